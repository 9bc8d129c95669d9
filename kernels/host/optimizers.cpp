// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the parameters, element by element; the formulas and their sources are in the header. O(parameters).
#include "kernels/calls.h"

#include "kernels/host/simd.h"

#include <cassert>
#include <cmath>

namespace pipewright::kernels {
namespace {

PIPEWRIGHT_VECTOR_CLONES
void sgdLoop(std::size_t count, SgdSettings settings, float* p, const float* g, float* v)
{
    const float keep = 1.0f - settings.learningRate * settings.weightDecay;
    for (std::size_t i = 0; i < count; ++i) {
        v[i] = settings.momentum * v[i] + g[i];
        p[i] = keep * p[i] - settings.learningRate * v[i];
    }
}

PIPEWRIGHT_VECTOR_CLONES
void adamWLoop(std::size_t count, AdamWSettings settings, float correction1, float correction2, float* p,
               const float* g, float* m, float* v)
{
    const auto [rate, beta1, beta2, epsilon, decay] = settings;
    const float keep = 1.0f - rate * decay;
    for (std::size_t i = 0; i < count; ++i) {
        m[i] = beta1 * m[i] + (1.0f - beta1) * g[i];
        v[i] = beta2 * v[i] + (1.0f - beta2) * g[i] * g[i];
        p[i] = keep * p[i] - rate * (m[i] * correction1) / (std::sqrt(v[i] * correction2) + epsilon);
    }
}

} // namespace

void run(const SgdMomentumStep& call)
{
    const auto [settings, parameters, gradients, momentum] = call;
    assert(parameters.size() == gradients.size() && parameters.size() == momentum.size());
    sgdLoop(parameters.size(), settings, parameters.data(), gradients.data(), momentum.data());
}

void run(const AdamWStep& call)
{
    const auto [settings, step, parameters, gradients, firstMoment, secondMoment] = call;
    assert(step >= 1 && parameters.size() == gradients.size());
    assert(parameters.size() == firstMoment.size() && parameters.size() == secondMoment.size());
    const double correction1 = 1.0 / (1.0 - std::pow(double(settings.beta1), step));
    const double correction2 = 1.0 / (1.0 - std::pow(double(settings.beta2), step));
    adamWLoop(parameters.size(), settings, float(correction1), float(correction2), parameters.data(), gradients.data(),
              firstMoment.data(), secondMoment.data());
}

void run(const RmsPropStep& call)
{
    const auto [settings, parameters, gradients, squares, last] = call;
    assert(parameters.size() == gradients.size() && parameters.size() == squares.size());
    const auto [rate, keep, epsilon] = settings;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const float g = last[i] = gradients[i];
        squares[i] = keep * squares[i] + (1 - keep) * g * g;
        parameters[i] -= rate * (g / (std::sqrt(squares[i]) + epsilon));
    }
}

void run(const PredictMomentum& call)
{
    const auto [distance, parameters, momentum, predicted] = call;
    assert(parameters.size() == momentum.size() && parameters.size() == predicted.size());
    for (std::size_t i = 0; i < parameters.size(); ++i)
        predicted[i] = parameters[i] - distance * momentum[i];
}

void run(const PredictRmsProp& call)
{
    const auto [distance, epsilon, parameters, squares, last, predicted] = call;
    assert(parameters.size() == squares.size() && parameters.size() == last.size());
    assert(parameters.size() == predicted.size());
    for (std::size_t i = 0; i < parameters.size(); ++i)
        predicted[i] = parameters[i] - distance * (last[i] / (std::sqrt(squares[i]) + epsilon));
}

void run(const PredictAdam& call)
{
    const auto [settings, step, distance, parameters, firstMoment, secondMoment, predicted] = call;
    assert(parameters.size() == firstMoment.size() && parameters.size() == secondMoment.size());
    assert(parameters.size() == predicted.size());
    const auto correction1 = float(1.0 / (1.0 - std::pow(double(settings.beta1), step)));
    const auto correction2 = float(1.0 / (1.0 - std::pow(double(settings.beta2), step)));
    for (std::size_t i = 0; i < parameters.size(); ++i)
        predicted[i] =
            parameters[i]
            - distance * (firstMoment[i] * correction1) / (std::sqrt(secondMoment[i] * correction2) + settings.epsilon);
}

} // namespace pipewright::kernels
