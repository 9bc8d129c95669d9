// SPDX-License-Identifier: GPL-3.0-or-later
// One loop per function and pass. O(elements).
#include "kernels/calls.h"

#include "kernels/host/simd.h"

#include <cassert>
#include <cmath>

namespace pipewright::kernels {
namespace {

/// A function's value and slope at one place.
struct ValueAndSlope {
    float value, slope;
};

struct GeluByTanh {
    [[gnu::always_inline]] ValueAndSlope operator()(float x) const
    {
        constexpr float cubic = 0.044715f, steep = 2 * 0.7978845608f;
        const float s = 1.0f / (1.0f + exponential(-steep * (x + cubic * x * x * x)));
        return {x * s, s + x * s * (1.0f - s) * steep * (1.0f + 3 * cubic * x * x)};
    }
};

struct GeluByErf {
    [[gnu::always_inline]] ValueAndSlope operator()(float x) const
    {
        constexpr float rootHalf = 0.70710678f, density = 0.39894228f; // 1 / sqrt(2), 1 / sqrt(2 pi)
        const float below = 0.5f * (1.0f + std::erf(x * rootHalf));
        return {x * below, below + x * density * exponential(-0.5f * x * x)};
    }
};

struct SiluFunction {
    [[gnu::always_inline]] ValueAndSlope operator()(float x) const
    {
        const float s = 1.0f / (1.0f + exponential(-x));
        return {x * s, s * (1.0f + x * (1.0f - s))};
    }
};

struct TanhFunction {
    [[gnu::always_inline]] ValueAndSlope operator()(float x) const
    {
        const float steep = 1.0f / std::cosh(x); // 1 - tanh² would cancel where tanh is near 1
        return {std::tanh(x), steep * steep};
    }
};

// In place is allowed in all of them: each element depends on its own index only. Where there is no factor it is 1.
template<class Function>
[[gnu::always_inline]] inline void valueLoop(std::size_t count, const float* x, const float* factor, float* y)
{
    const Function f;
    if (factor)
        PIPEWRIGHT_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i)
        y[i] = f(x[i]).value * factor[i];
    else PIPEWRIGHT_INDEPENDENT for (std::size_t i = 0; i < count; ++i) y[i] = f(x[i]).value;
}

template<class Function>
[[gnu::always_inline]] inline void slopeLoop(std::size_t count, const float* x, const float* factor, const float* dy,
                                             float* dx, float* dFactor)
{
    const Function f;
    if (factor)
        PIPEWRIGHT_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
        const ValueAndSlope at = f(x[i]);
        const float grad = dy[i];
        dx[i] = grad * at.slope * factor[i];
        dFactor[i] = grad * at.value;
    }
    else PIPEWRIGHT_INDEPENDENT for (std::size_t i = 0; i < count; ++i) dx[i] = dy[i] * f(x[i]).slope;
}

PIPEWRIGHT_VECTOR_CLONES
void geluTanhValues(std::size_t count, const float* x, const float* factor, float* y)
{
    valueLoop<GeluByTanh>(count, x, factor, y);
}
// By itself, without a factor, it is between the products of GPT: loops of their own are up to a quarter faster.
PIPEWRIGHT_VECTOR_CLONES
void geluTanhValuesAlone(std::size_t count, const float* x, float* y)
{
    const GeluByTanh f;
    PIPEWRIGHT_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i)
        y[i] = f(x[i]).value;
}
PIPEWRIGHT_VECTOR_CLONES
void geluTanhSlopesAlone(std::size_t count, const float* x, const float* dy, float* dx)
{
    const GeluByTanh f;
    PIPEWRIGHT_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i)
        dx[i] = dy[i] * f(x[i]).slope;
}
PIPEWRIGHT_VECTOR_CLONES
void geluTanhSlopes(std::size_t count, const float* x, const float* factor, const float* dy, float* dx, float* dFactor)
{
    slopeLoop<GeluByTanh>(count, x, factor, dy, dx, dFactor);
}
void geluValues(std::size_t count, const float* x, const float* factor, float* y)
{
    valueLoop<GeluByErf>(count, x, factor, y);
}
void geluSlopes(std::size_t count, const float* x, const float* factor, const float* dy, float* dx, float* dFactor)
{
    slopeLoop<GeluByErf>(count, x, factor, dy, dx, dFactor);
}
PIPEWRIGHT_VECTOR_CLONES
void siluValues(std::size_t count, const float* x, const float* factor, float* y)
{
    valueLoop<SiluFunction>(count, x, factor, y);
}
PIPEWRIGHT_VECTOR_CLONES
void siluSlopes(std::size_t count, const float* x, const float* factor, const float* dy, float* dx, float* dFactor)
{
    slopeLoop<SiluFunction>(count, x, factor, dy, dx, dFactor);
}

void tanhValues(std::size_t count, const float* x, const float* factor, float* y)
{
    valueLoop<TanhFunction>(count, x, factor, y);
}
void tanhSlopes(std::size_t count, const float* x, const float* factor, const float* dy, float* dx, float* dFactor)
{
    slopeLoop<TanhFunction>(count, x, factor, dy, dx, dFactor);
}

constexpr float clampLimit = 7.0f, clampSteepness = 1.702f;

PIPEWRIGHT_VECTOR_CLONES
void clampedValues(std::size_t count, const float* x, const float* factor, float* y)
{
    PIPEWRIGHT_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
        const float g = x[i] < clampLimit ? x[i] : clampLimit;
        const float above = factor[i] < clampLimit ? factor[i] : clampLimit;
        const float u = above > -clampLimit ? above : -clampLimit;
        y[i] = g / (1.0f + exponential(-clampSteepness * g)) * (1.0f + u);
    }
}
PIPEWRIGHT_VECTOR_CLONES
void clampedSlopes(std::size_t count, const float* x, const float* factor, const float* dy, float* dx, float* dFactor)
{
    PIPEWRIGHT_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
        const float g = x[i] < clampLimit ? x[i] : clampLimit;
        const float above = factor[i] < clampLimit ? factor[i] : clampLimit;
        const float u = above > -clampLimit ? above : -clampLimit;
        const float s = 1.0f / (1.0f + exponential(-clampSteepness * g)), grad = dy[i];
        const float slope = s * (1.0f + clampSteepness * g * (1.0f - s)) * (1.0f + u);
        dx[i] = x[i] <= clampLimit ? grad * slope : 0.0f;
        dFactor[i] = u == factor[i] ? grad * g * s : 0.0f;
    }
}

void valuesOf(ActivationKind kind, std::size_t count, const float* x, const float* factor, float* y)
{
    switch (kind) {
    case ActivationKind::GeluTanh:
        return factor ? geluTanhValues(count, x, factor, y) : geluTanhValuesAlone(count, x, y);
    case ActivationKind::Gelu: return geluValues(count, x, factor, y);
    case ActivationKind::Silu: return siluValues(count, x, factor, y);
    case ActivationKind::Tanh: return tanhValues(count, x, factor, y);
    case ActivationKind::ClampedSilu: assert(factor); return clampedValues(count, x, factor, y);
    }
}

void slopesOf(ActivationKind kind, std::size_t count, const float* x, const float* factor, const float* dy, float* dx,
              float* dFactor)
{
    switch (kind) {
    case ActivationKind::GeluTanh:
        return factor ? geluTanhSlopes(count, x, factor, dy, dx, dFactor) : geluTanhSlopesAlone(count, x, dy, dx);
    case ActivationKind::Gelu: return geluSlopes(count, x, factor, dy, dx, dFactor);
    case ActivationKind::Silu: return siluSlopes(count, x, factor, dy, dx, dFactor);
    case ActivationKind::Tanh: return tanhSlopes(count, x, factor, dy, dx, dFactor);
    case ActivationKind::ClampedSilu: assert(factor); return clampedSlopes(count, x, factor, dy, dx, dFactor);
    }
}

} // namespace

void run(const ActivationForward& call)
{
    assert(call.input.size() == call.output.size());
    valuesOf(call.kind, call.input.size(), call.input.data(), nullptr, call.output.data());
}

void run(const ActivationInputGrad& call)
{
    assert(call.input.size() == call.outputGrad.size() && call.input.size() == call.inputGrad.size());
    slopesOf(call.kind, call.input.size(), call.input.data(), nullptr, call.outputGrad.data(), call.inputGrad.data(),
             nullptr);
}

void run(const GatedForward& call)
{
    assert(call.gate.size() == call.factor.size() && call.gate.size() == call.output.size());
    valuesOf(call.kind, call.gate.size(), call.gate.data(), call.factor.data(), call.output.data());
}

void run(const GatedInputGrad& call)
{
    assert(call.gate.size() == call.factor.size() && call.gate.size() == call.outputGrad.size());
    assert(call.gate.size() == call.gateGrad.size() && call.gate.size() == call.factorGrad.size());
    slopesOf(call.kind, call.gate.size(), call.gate.data(), call.factor.data(), call.outputGrad.data(),
             call.gateGrad.data(), call.factorGrad.data());
}

} // namespace pipewright::kernels
