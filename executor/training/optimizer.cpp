// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/optimizer.h"

#include <cassert>

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
    return m_settings.kind == Optimizer::AdamW ? 2 * m_count : m_count;
}

void StageOptimizer::update(int step, std::span<float> parameters, std::span<const float> gradients,
                            std::span<float> state) const
{
    assert(parameters.size() == m_count && gradients.size() == m_count && state.size() == stateElements());
    for (const auto [offset, count, decays] : m_ranges) {
        const auto values = parameters.subspan(offset, count);
        const auto slopes = gradients.subspan(offset, count);
        if (m_settings.kind == Optimizer::AdamW) {
            kernels::AdamWSettings settings = m_settings.adamW;
            settings.weightDecay = decays ? settings.weightDecay : 0;
            kernels::adamWStep(settings, step, values, slopes, state.subspan(offset, count),
                               state.subspan(m_count + offset, count));
        } else {
            kernels::SgdSettings settings = m_settings.sgd;
            settings.weightDecay = decays ? settings.weightDecay : 0;
            kernels::sgdMomentumStep(settings, values, slopes, state.subspan(offset, count));
        }
    }
}

} // namespace pipewright
