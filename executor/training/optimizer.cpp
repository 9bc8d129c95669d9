// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace pipewright {

StageOptimizer::StageOptimizer(const ParameterLayout& layout, const OptimizerSettings& settings)
    : m_settings(settings), m_count(layout.count())
{
    for (const Parameter& parameter : layout.parameters()) {
        if (m_ranges.empty() || m_ranges.back().decays != parameter.isMatrix())
            m_ranges.push_back({parameter.offset, 0, parameter.isMatrix()});
        m_ranges.back().count += parameter.count();
    }
}

std::size_t StageOptimizer::stateElements() const
{
    return m_settings.updateRule() == UpdateRule::SgdMomentum ? m_count : 2 * m_count;
}

void StageOptimizer::update(int step, std::span<float> parameters, std::span<const float> gradients,
                            std::span<float> state) const
{
    assert(parameters.size() == m_count && gradients.size() == m_count && state.size() == stateElements());
    for (const auto [offset, count, decays] : m_ranges) {
        const auto values = parameters.subspan(offset, count);
        const auto slopes = gradients.subspan(offset, count);
        const UpdateRule rule = m_settings.updateRule();
        if (rule == UpdateRule::RmsProp) {
            rmsPropStep(values, slopes, state.subspan(offset, count), state.subspan(m_count + offset, count));
        } else if (rule != UpdateRule::SgdMomentum) {
            kernels::AdamWSettings settings = m_settings.adamW;
            settings.weightDecay = decays && rule == UpdateRule::AdamW ? settings.weightDecay : 0;
            kernels::adamWStep(settings, step, values, slopes, state.subspan(offset, count),
                               state.subspan(m_count + offset, count));
        } else {
            kernels::SgdSettings settings = m_settings.sgd;
            settings.weightDecay = decays ? settings.weightDecay : 0;
            kernels::sgdMomentumStep(settings, values, slopes, state.subspan(offset, count));
        }
    }
}

void StageOptimizer::rmsPropStep(std::span<float> parameters, std::span<const float> gradients,
                                 std::span<float> squares, std::span<float> last) const
{
    const float keep = m_settings.rmsSmoothing, rate = m_settings.adamW.learningRate,
                epsilon = m_settings.adamW.epsilon;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const float g = last[i] = gradients[i];
        squares[i] = keep * squares[i] + (1 - keep) * g * g;
        parameters[i] -= rate * (g / (std::sqrt(squares[i]) + epsilon));
    }
}

void StageOptimizer::predict(int updates, int steps, std::span<const float> parameters, std::span<const float> state,
                             std::span<float> predicted) const
{
    assert(parameters.size() == m_count && predicted.size() == m_count && state.size() == stateElements());
    std::copy(parameters.begin(), parameters.end(), predicted.begin());
    if (updates == 0 || steps == 0)
        return;
    const float ahead = static_cast<float>(steps);
    switch (m_settings.updateRule()) {
    case UpdateRule::SgdMomentum:
        for (std::size_t i = 0; i < m_count; ++i)
            predicted[i] -= m_settings.sgd.learningRate * ahead * state[i];
        return;
    case UpdateRule::RmsProp:
        for (std::size_t i = 0; i < m_count; ++i)
            predicted[i] -= m_settings.adamW.learningRate * ahead
                            * (state[m_count + i] / (std::sqrt(state[i]) + m_settings.adamW.epsilon));
        return;
    case UpdateRule::Adam:
    case UpdateRule::AdamW: break;
    }
    const kernels::AdamWSettings& adam = m_settings.adamW;
    const auto correction1 = float(1.0 / (1.0 - std::pow(double(adam.beta1), updates)));
    const auto correction2 = float(1.0 / (1.0 - std::pow(double(adam.beta2), updates)));
    for (std::size_t i = 0; i < m_count; ++i)
        predicted[i] -= adam.learningRate * ahead * (state[i] * correction1)
                        / (std::sqrt(state[m_count + i] * correction2) + adam.epsilon);
}

} // namespace pipewright
