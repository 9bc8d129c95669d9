// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/optimizers.h"

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

void sgdMomentumStep(const SgdSettings& settings, std::span<float> parameters, std::span<const float> gradients,
                     std::span<float> momentum)
{
    assert(parameters.size() == gradients.size() && parameters.size() == momentum.size());
    sgdLoop(parameters.size(), settings, parameters.data(), gradients.data(), momentum.data());
}

void adamWStep(const AdamWSettings& settings, int step, std::span<float> parameters, std::span<const float> gradients,
               std::span<float> firstMoment, std::span<float> secondMoment)
{
    assert(step >= 1 && parameters.size() == gradients.size());
    assert(parameters.size() == firstMoment.size() && parameters.size() == secondMoment.size());
    const double correction1 = 1.0 / (1.0 - std::pow(double(settings.beta1), step));
    const double correction2 = 1.0 / (1.0 - std::pow(double(settings.beta2), step));
    adamWLoop(parameters.size(), settings, float(correction1), float(correction2), parameters.data(), gradients.data(),
              firstMoment.data(), secondMoment.data());
}

void rmsPropStep(const RmsPropSettings& settings, std::span<float> parameters, std::span<const float> gradients,
                 std::span<float> squares, std::span<float> last)
{
    assert(parameters.size() == gradients.size() && parameters.size() == squares.size());
    const auto [rate, keep, epsilon] = settings;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const float g = last[i] = gradients[i];
        squares[i] = keep * squares[i] + (1 - keep) * g * g;
        parameters[i] -= rate * (g / (std::sqrt(squares[i]) + epsilon));
    }
}

void predictMomentum(float distance, std::span<const float> momentum, std::span<float> parameters)
{
    assert(parameters.size() == momentum.size());
    for (std::size_t i = 0; i < parameters.size(); ++i)
        parameters[i] -= distance * momentum[i];
}

void predictRmsProp(float distance, float epsilon, std::span<const float> squares, std::span<const float> last,
                    std::span<float> parameters)
{
    assert(parameters.size() == squares.size() && parameters.size() == last.size());
    for (std::size_t i = 0; i < parameters.size(); ++i)
        parameters[i] -= distance * (last[i] / (std::sqrt(squares[i]) + epsilon));
}

void predictAdam(const AdamWSettings& settings, int step, float distance, std::span<const float> firstMoment,
                 std::span<const float> secondMoment, std::span<float> parameters)
{
    assert(parameters.size() == firstMoment.size() && parameters.size() == secondMoment.size());
    const auto correction1 = float(1.0 / (1.0 - std::pow(double(settings.beta1), step)));
    const auto correction2 = float(1.0 / (1.0 - std::pow(double(settings.beta2), step)));
    for (std::size_t i = 0; i < parameters.size(); ++i)
        parameters[i] -=
            distance * (firstMoment[i] * correction1) / (std::sqrt(secondMoment[i] * correction2) + settings.epsilon);
}

} // namespace pipewright::kernels
