// SPDX-License-Identifier: GPL-3.0-or-later
// Element by element: the functions of activation.h with and without a factor, and the cap of softcap.h. Bound by
// memory bandwidth.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/lines.cuh"

#include <cmath>

namespace pipewright::kernels::cuda {

namespace {

/// A function's value and slope at one place.
struct ValueAndSlope {
    float value, slope;
};

__device__ ValueAndSlope timesSigmoid(float x, float inner, float innerSlope)
{
    const float s = 1.0f / (1.0f + expf(-inner));
    return {x * s, s + x * s * (1.0f - s) * innerSlope};
}

/// For all kinds except the clamped one, which is not a function of the gate alone.
__device__ ValueAndSlope activate(ActivationKind kind, float x)
{
    switch (kind) {
    case ActivationKind::GeluTanh: {
        constexpr float cubic = 0.044715f,
                        steep = 2 * 0.7978845608f; // 2 · sqrt(2 / pi): tanh(u) = 2 · sigmoid(2 u) - 1
        return timesSigmoid(x, steep * (x + cubic * x * x * x), steep * (1.0f + 3 * cubic * x * x));
    }
    case ActivationKind::Gelu: {
        constexpr float rootHalf = 0.70710678f, density = 0.39894228f; // 1 / sqrt(2), 1 / sqrt(2 pi)
        const float below = 0.5f * (1.0f + erff(x * rootHalf));
        return {x * below, below + x * density * expf(-0.5f * x * x)};
    }
    case ActivationKind::Silu: return timesSigmoid(x, x, 1);
    case ActivationKind::Tanh: {
        const float steep = 1.0f / coshf(x); // 1 - tanh² would cancel where tanh is near 1
        return {tanhf(x), steep * steep};
    }
    case ActivationKind::ClampedSilu: break;
    }
    return {NAN, NAN};
}

/// The value of a gated activation, and its derivatives by the gate and by the factor.
struct Gate {
    float value, gateSlope, factorSlope;
};

constexpr float clampLimit = 7.0f, clampSteepness = 1.702f;

__device__ Gate gated(ActivationKind kind, float gate, float factor)
{
    if (kind != ActivationKind::ClampedSilu) {
        const ValueAndSlope at = activate(kind, gate);
        return {at.value * factor, at.slope * factor, at.value};
    }
    const float g = fminf(gate, clampLimit), u = fmaxf(fminf(factor, clampLimit), -clampLimit);
    const ValueAndSlope at = timesSigmoid(g, clampSteepness * g, clampSteepness);
    return {at.value * (1.0f + u), gate <= clampLimit ? at.slope * (1.0f + u) : 0.0f, u == factor ? at.value : 0.0f};
}

template<typename Element>
void activation(const Context& context, const ActivationForward& call)
{
    using Place = typename Out<Element>::Place;
    launchLines(
        context, call.input.size(), [kind = call.kind] __device__(Place y, float x) { y = activate(kind, x).value; },
        fresh<Element>(call.output), in<Element>(call.input));
}

template<typename Element>
void activationGradient(const Context& context, const ActivationInputGrad& call)
{
    using Place = typename Out<Element>::Place;
    launchLines(
        context, call.input.size(),
        [kind = call.kind] __device__(Place dx, float x, float dy) { dx = dy * activate(kind, x).slope; },
        fresh<Element>(call.inputGrad), in<Element>(call.input), in<Element>(call.outputGrad));
}

template<typename Element>
void gate(const Context& context, const GatedForward& call)
{
    using Place = typename Out<Element>::Place;
    launchLines(
        context, call.gate.size(),
        [kind = call.kind] __device__(Place y, float gate, float factor) { y = gated(kind, gate, factor).value; },
        fresh<Element>(call.output), in<Element>(call.gate), in<Element>(call.factor));
}

template<typename Element>
void gateGradient(const Context& context, const GatedInputGrad& call)
{
    using Place = typename Out<Element>::Place;
    launchLines(
        context, call.gate.size(),
        [kind = call.kind] __device__(Place gateGrad, Place factorGrad, float gate, float factor, float grad) {
            const Gate at = gated(kind, gate, factor);
            gateGrad = grad * at.gateSlope; // may overwrite `grad`
            factorGrad = grad * at.factorSlope;
        },
        fresh<Element>(call.gateGrad), fresh<Element>(call.factorGrad), in<Element>(call.gate),
        in<Element>(call.factor), in<Element>(call.outputGrad));
}

template<typename Element>
void capGradient(const Context& context, const SoftCapGrad& call)
{
    using Place = typename Out<Element>::Place;
    launchLines(
        context, call.grad.size(),
        [cap = call.cap] __device__(Place grad, float capped) {
            const float share = capped / cap;
            grad = grad * (1 - share * share);
        },
        out<Element>(call.grad), in<float>(call.capped));
}

} // namespace

void run(const Context& context, const ActivationForward& call)
{
    withElement(context, 0, [&](auto element) { activation<decltype(element)>(context, call); });
}

void run(const Context& context, const ActivationInputGrad& call)
{
    withElement(context, 0, [&](auto element) { activationGradient<decltype(element)>(context, call); });
}

void run(const Context& context, const GatedForward& call)
{
    withElement(context, 0, [&](auto element) { gate<decltype(element)>(context, call); });
}

void run(const Context& context, const GatedInputGrad& call)
{
    withElement(context, 0, [&](auto element) { gateGradient<decltype(element)>(context, call); });
}

/// On logits, which are always fp32.
void run(const Context& context, const SoftCap& call)
{
    using Place = Out<float>::Place;
    launchLines(
        context, call.values.size(), [cap = call.cap] __device__(Place value) { value = cap * tanhf(value / cap); },
        out<float>(call.values));
}

void run(const Context& context, const SoftCapGrad& call)
{
    withElement(context, 0, [&](auto element) { capGradient<decltype(element)>(context, call); });
}

} // namespace pipewright::kernels::cuda
