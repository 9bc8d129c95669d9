// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per element: copies, sums and optimizer steps, all bound by memory bandwidth. Formulas: the headers.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stored.cuh"

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
    launchEach(context, call.values.size(),
               [v = out<Element>(call.values), value = call.value] __device__(std::size_t i) { v[i] = value; });
}

/// The sum may be one over a microbatch, of values that are stored.
template<typename Sum, typename Element>
void add(const Context& context, const Add& call)
{
    launchEach(context, call.values.size(),
               [v = out<Sum>(call.values), a = in<Element>(call.addend)] __device__(std::size_t i) { v[i] += a[i]; });
}

template<typename Element>
void fromBytes(const Context& context, const FromBytes& call)
{
    launchEach(context, call.bytes.size(),
               [from = call.bytes.data(), to = out<Element>(call.values)] __device__(std::size_t i) {
                   to[i] = float(from[i]) / 127.5f - 1.0f;
               });
}

/// Predicted weights may be stored, of parameters in fp32.
template<typename Element>
void predict(const Context& context, const PredictMomentum& call)
{
    launchEach(context, call.parameters.size(),
               [distance = call.distance, to = out<Element>(call.predicted), p = call.parameters.data(),
                v = call.momentum.data()] __device__(std::size_t i) { to[i] = p[i] - distance * v[i]; });
}

template<typename Element>
void predict(const Context& context, const PredictRmsProp& call)
{
    launchEach(context, call.parameters.size(),
               [distance = call.distance, epsilon = call.epsilon, to = out<Element>(call.predicted),
                p = call.parameters.data(), v = call.squares.data(), g = call.last.data()] __device__(std::size_t i) {
                   to[i] = p[i] - distance * (g[i] / (sqrtf(v[i]) + epsilon));
               });
}

template<typename Element>
void predict(const Context& context, const PredictAdam& call)
{
    const float distance = call.distance, epsilon = call.settings.epsilon,
                correction1 = biasCorrection(call.settings.beta1, call.step),
                correction2 = biasCorrection(call.settings.beta2, call.step);
    launchEach(context, call.parameters.size(),
               [=, to = out<Element>(call.predicted), p = call.parameters.data(), m = call.firstMoment.data(),
                v = call.secondMoment.data()] __device__(std::size_t i) {
                   to[i] = p[i] - distance * (m[i] * correction1) / (sqrtf(v[i] * correction2) + epsilon);
               });
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
    const SgdSettings settings = call.settings;
    const float keep = 1.0f - settings.learningRate * settings.weightDecay;
    launchEach(
        context, call.parameters.size(),
        [=, p = call.parameters.data(), g = call.gradients.data(), v = call.momentum.data()] __device__(std::size_t i) {
            v[i] = settings.momentum * v[i] + g[i];
            p[i] = keep * p[i] - settings.learningRate * v[i];
        });
}

void run(const Context& context, const AdamWStep& call)
{
    const AdamWSettings settings = call.settings;
    const float correction1 = biasCorrection(settings.beta1, call.step),
                correction2 = biasCorrection(settings.beta2, call.step),
                keep = 1.0f - settings.learningRate * settings.weightDecay;
    launchEach(context, call.parameters.size(),
               [=, p = call.parameters.data(), g = call.gradients.data(), m = call.firstMoment.data(),
                v = call.secondMoment.data()] __device__(std::size_t i) {
                   m[i] = settings.beta1 * m[i] + (1.0f - settings.beta1) * g[i];
                   v[i] = settings.beta2 * v[i] + (1.0f - settings.beta2) * g[i] * g[i];
                   p[i] =
                       keep * p[i]
                       - settings.learningRate * (m[i] * correction1) / (sqrtf(v[i] * correction2) + settings.epsilon);
               });
}

void run(const Context& context, const RmsPropStep& call)
{
    launchEach(context, call.parameters.size(),
               [settings = call.settings, p = call.parameters.data(), g = call.gradients.data(),
                v = call.squares.data(), l = call.last.data()] __device__(std::size_t i) {
                   const float slope = l[i] = g[i];
                   v[i] = settings.smoothing * v[i] + (1.0f - settings.smoothing) * slope * slope;
                   p[i] -= settings.learningRate * (slope / (sqrtf(v[i]) + settings.epsilon));
               });
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
