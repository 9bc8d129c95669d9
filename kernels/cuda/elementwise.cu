// SPDX-License-Identifier: GPL-3.0-or-later
// Element by element: copies, sums and optimizer steps, all bound by memory bandwidth. Formulas: the headers.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/lines.cuh"

#include <cmath>

namespace pipewright::kernels::cuda {

namespace {

/// 1 / (1 - beta^step), of Adam's moments.
float biasCorrection(float beta, int step)
{
    return float(1.0 / (1.0 - std::pow(double(beta), step)));
}

template<typename Element>
void fill(const Context& context, const Fill& call)
{
    using Place = typename Out<Element>::Place;
    launchLines(
        context, call.values.size(), [value = call.value] __device__(Place place) { place = value; },
        fresh<Element>(call.values));
}

/// Sum and addend may have different types.
template<typename Sum, typename Element>
void add(const Context& context, const Add& call)
{
    using Place = typename Out<Sum>::Place;
    launchLines(
        context, call.values.size(), [] __device__(Place sum, float addend) { sum += addend; }, out<Sum>(call.values),
        in<Element>(call.addend));
}

template<typename Element>
void fromBytes(const Context& context, const FromBytes& call)
{
    launchEach(context, call.bytes.size(),
               [from = call.bytes.data(), to = out<Element>(call.values)] __device__(std::size_t i) {
                   to[i] = float(from[i]) / 127.5f - 1.0f;
               });
}

/// Predicted weights may be bf16 while the parameters are fp32.
template<typename Element>
void predict(const Context& context, const PredictMomentum& call)
{
    using Place = typename Out<Element>::Place;
    launchLines(
        context, call.parameters.size(),
        [distance = call.distance] __device__(Place to, float parameter, float momentum) {
            to = parameter - distance * momentum;
        },
        fresh<Element>(call.predicted), in<float>(call.parameters), in<float>(call.momentum));
}

template<typename Element>
void predict(const Context& context, const PredictRmsProp& call)
{
    using Place = typename Out<Element>::Place;
    launchLines(
        context, call.parameters.size(),
        [distance = call.distance, epsilon = call.epsilon] __device__(Place to, float parameter, float square,
                                                                      float last) {
            to = parameter - distance * (last / (sqrtf(square) + epsilon));
        },
        fresh<Element>(call.predicted), in<float>(call.parameters), in<float>(call.squares), in<float>(call.last));
}

template<typename Element>
void predict(const Context& context, const PredictAdam& call)
{
    using Place = typename Out<Element>::Place;
    const float distance = call.distance, epsilon = call.settings.epsilon,
                correction1 = biasCorrection(call.settings.beta1, call.step),
                correction2 = biasCorrection(call.settings.beta2, call.step);
    launchLines(
        context, call.parameters.size(),
        [=] __device__(Place to, float parameter, float first, float second) {
            to = parameter - distance * (first * correction1) / (sqrtf(second * correction2) + epsilon);
        },
        fresh<Element>(call.predicted), in<float>(call.parameters), in<float>(call.firstMoment),
        in<float>(call.secondMoment));
}

} // namespace

void run(const Context& context, const Copy& call)
{
    cudaMemcpyAsync(call.to, call.from, call.bytes, cudaMemcpyDeviceToDevice, context.stream);
}

void run(const Context& context, const Fill& call)
{
    withElement(context, 0, [&](auto element) { fill<decltype(element)>(context, call); });
}

void run(const Context& context, const Add& call)
{
    withElement(context, 0, [&](auto sum) {
        withElement(context, 1, [&](auto element) { add<decltype(sum), decltype(element)>(context, call); });
    });
}

void run(const Context& context, const FromBytes& call)
{
    withElement(context, 0, [&](auto element) { fromBytes<decltype(element)>(context, call); });
}

void run(const Context& context, const SgdMomentumStep& call)
{
    using Place = Out<float>::Place;
    const SgdSettings settings = call.settings;
    const float keep = 1.0f - settings.learningRate * settings.weightDecay;
    launchLines(
        context, call.parameters.size(),
        [=] __device__(Place parameter, Place momentum, float gradient) {
            momentum = settings.momentum * momentum + gradient;
            parameter = keep * parameter - settings.learningRate * momentum;
        },
        out<float>(call.parameters), out<float>(call.momentum), in<float>(call.gradients));
}

void run(const Context& context, const AdamWStep& call)
{
    using Place = Out<float>::Place;
    const AdamWSettings settings = call.settings;
    const float correction1 = biasCorrection(settings.beta1, call.step),
                correction2 = biasCorrection(settings.beta2, call.step),
                keep = 1.0f - settings.learningRate * settings.weightDecay;
    launchLines(
        context, call.parameters.size(),
        [=] __device__(Place parameter, Place first, Place second, float gradient) {
            first = settings.beta1 * first + (1.0f - settings.beta1) * gradient;
            second = settings.beta2 * second + (1.0f - settings.beta2) * gradient * gradient;
            parameter =
                keep * parameter
                - settings.learningRate * (first * correction1) / (sqrtf(second * correction2) + settings.epsilon);
        },
        out<float>(call.parameters), out<float>(call.firstMoment), out<float>(call.secondMoment),
        in<float>(call.gradients));
}

void run(const Context& context, const RmsPropStep& call)
{
    using Place = Out<float>::Place;
    launchLines(
        context, call.parameters.size(),
        [settings = call.settings] __device__(Place parameter, Place square, Place last, float slope) {
            last = slope;
            square = settings.smoothing * square + (1.0f - settings.smoothing) * slope * slope;
            parameter += -(settings.learningRate * (slope / (sqrtf(square) + settings.epsilon)));
        },
        out<float>(call.parameters), out<float>(call.squares), fresh<float>(call.last), in<float>(call.gradients));
}

void run(const Context& context, const PredictMomentum& call)
{
    withElement(context, 0, [&](auto element) { predict<decltype(element)>(context, call); });
}

void run(const Context& context, const PredictRmsProp& call)
{
    withElement(context, 0, [&](auto element) { predict<decltype(element)>(context, call); });
}

void run(const Context& context, const PredictAdam& call)
{
    withElement(context, 0, [&](auto element) { predict<decltype(element)>(context, call); });
}

} // namespace pipewright::kernels::cuda
