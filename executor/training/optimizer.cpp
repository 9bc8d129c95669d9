// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/optimizer.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace pipewright {

StageOptimizer::StageOptimizer(const ParameterLayout& layout, const OptimizerSettings& settings)
    : m_settings(settings), m_count(layout.count())
{
    for (const Parameter& parameter : layout.parameters()) {
        if (m_ranges.empty() || m_ranges.back().decays != parameter.isMatrix() || parameter.isCorrection
            || m_ranges.back().isCorrection)
            m_ranges.push_back(
                {parameter.offset, 0, parameter.isMatrix(), parameter.isCorrection, float(parameter.correctionRate)});
        m_ranges.back().count += parameter.count();
    }
}

StageOptimizer::StageOptimizer(std::size_t count, std::vector<Range> ranges, const OptimizerSettings& settings)
    : m_settings(settings), m_count(count), m_ranges(std::move(ranges))
{
}

StageOptimizer StageOptimizer::part(std::size_t begin, std::size_t count) const
{
    std::vector<Range> ranges;
    for (Range range : m_ranges) {
        const std::size_t from = std::max(range.offset, begin),
                          until = std::min(range.offset + range.count, begin + count);
        if (from >= until)
            continue;
        range.offset = from - begin;
        range.count = until - from;
        ranges.push_back(range);
    }
    return {count, std::move(ranges), m_settings};
}

std::size_t StageOptimizer::stateElements() const
{
    return static_cast<std::size_t>(factsOf(m_settings.kind).values) * m_count;
}

void StageOptimizer::update(const kernels::Operations& operations, int step, std::span<float> parameters,
                            std::span<const float> gradients, std::span<float> state) const
{
    assert(parameters.size() == m_count && gradients.size() == m_count && state.size() == stateElements());
    for (const auto [offset, count, decays, isCorrection, correctionRate] : m_ranges) {
        const auto values = parameters.subspan(offset, count);
        const auto slopes = gradients.subspan(offset, count);
        if (isCorrection) { // its gradients are counts
            operations.run(kernels::BalanceStep{correctionRate, slopes, values});
            continue;
        }
        switch (m_settings.kind) {
        case Optimizer::RmsProp:
            operations.run(
                kernels::RmsPropStep{{m_settings.adamW.learningRate, m_settings.rmsSmoothing, m_settings.adamW.epsilon},
                                     values,
                                     slopes,
                                     state.subspan(offset, count),
                                     state.subspan(m_count + offset, count)});
            break;
        case Optimizer::Adam:
        case Optimizer::AdamW: {
            kernels::AdamWSettings settings = m_settings.adamW;
            settings.weightDecay = decays && m_settings.kind == Optimizer::AdamW ? settings.weightDecay : 0;
            operations.run(kernels::AdamWStep{settings, step, values, slopes, state.subspan(offset, count),
                                              state.subspan(m_count + offset, count)});
            break;
        }
        case Optimizer::SgdMomentum: {
            kernels::SgdSettings settings = m_settings.sgd;
            settings.weightDecay = decays ? settings.weightDecay : 0;
            operations.run(kernels::SgdMomentumStep{settings, values, slopes, state.subspan(offset, count)});
            break;
        }
        }
    }
}

void StageOptimizer::predict(const kernels::Operations& operations, int updates, int steps,
                             std::span<const float> parameters, std::span<const float> state,
                             std::span<float> predicted, std::size_t first) const
{
    const std::size_t count = predicted.size();
    assert(parameters.size() == m_count && first + count <= m_count && state.size() == stateElements());
    if (updates == 0 || steps == 0)
        operations.copy(parameters.subspan(first, count), predicted);
    else
        predictInto(operations, updates, steps, first, {parameters, state}, predicted, 0);
}

void StageOptimizer::predict(const kernels::Operations& operations, int updates, int steps,
                             std::span<const float> parameters, std::span<const float> state,
                             std::span<std::uint16_t> predicted) const
{
    assert(parameters.size() == m_count && predicted.size() == m_count && state.size() == stateElements());
    if (updates == 0 || steps == 0)
        operations.run(kernels::Narrow{parameters, predicted});
    else // an operand that lies in memory as bf16 (kernels/operands.h)
        predictInto(operations, updates, steps, 0, {parameters, state},
                    {reinterpret_cast<float*>(predicted.data()), predicted.size()}, 1);
}

void StageOptimizer::predictInto(const kernels::Operations& operations, int updates, int steps, std::size_t first,
                                 const From& from, std::span<float> predicted, kernels::StoredOperands stored) const
{
    const std::size_t count = predicted.size();
    const auto values = from.parameters.subspan(first, count), ofState = from.state.subspan(first, count);
    const auto secondOfState = [&] { return from.state.subspan(m_count + first, count); };
    const float ahead = static_cast<float>(steps);
    const kernels::AdamWSettings& adam = m_settings.adamW;
    switch (m_settings.kind) {
    case Optimizer::SgdMomentum:
        operations.runStored(kernels::PredictMomentum{m_settings.sgd.learningRate * ahead, values, ofState, predicted},
                             stored);
        break;
    case Optimizer::RmsProp:
        operations.runStored(kernels::PredictRmsProp{adam.learningRate * ahead, adam.epsilon, values, ofState,
                                                     secondOfState(), predicted},
                             stored);
        break;
    case Optimizer::Adam:
    case Optimizer::AdamW:
        operations.runStored(
            kernels::PredictAdam{adam, updates, adam.learningRate * ahead, values, ofState, secondOfState(), predicted},
            stored);
        break;
    }
}

} // namespace pipewright
