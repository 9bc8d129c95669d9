// SPDX-License-Identifier: GPL-3.0-or-later
// The list of operands of each operation, for code that treats all operations alike. Floating-point operands are
// numbered in this order; a device that computes with bf16 in memory is told the numbers of the operands in bf16.
// Operands of whole numbers have no number.
#pragma once

#include "kernels/calls.h"

#include <cstdint>
#include <tuple>

namespace pipewright::kernels {

/// Bit i: the span of operand i holds as many 16-bit patterns instead of floats. Kernels expect one format per kind of
/// operand: results, their inputs and parameters are stored alike, sums over a microbatch are fp32.
using StoredOperands = std::uint32_t;

inline auto operandsOf(Copy&)
{
    return std::tie(); // bytes
}
inline auto operandsOf(Fill& c)
{
    return std::tie(c.values);
}
inline auto operandsOf(Add& c)
{
    return std::tie(c.values, c.addend);
}
inline auto operandsOf(LinearForward& c)
{
    return std::tie(c.output, c.bias, c.activated, c.input, c.weight);
}
inline auto operandsOf(LinearInputGrad& c)
{
    return std::tie(c.inputGrad, c.activationInput, c.outputGrad, c.weight);
}
inline auto operandsOf(LinearWeightGrad& c)
{
    return std::tie(c.weightGrad, c.biasGrad, c.input, c.outputGrad);
}
inline auto operandsOf(LayerNormForward& c)
{
    return std::tie(c.output, c.input, c.gamma, c.beta);
}
inline auto operandsOf(LayerNormInputGrad& c)
{
    return std::tie(c.inputGrad, c.input, c.gamma, c.outputGrad);
}
inline auto operandsOf(LayerNormWeightGrad& c)
{
    return std::tie(c.input, c.outputGrad, c.gammaGrad, c.betaGrad);
}
inline auto operandsOf(EmbeddingForward& c)
{
    return std::tie(c.output, c.table, c.positions, c.tokens);
}
inline auto operandsOf(EmbeddingWeightGrad& c)
{
    return std::tie(c.outputGrad, c.tableGrad, c.positionsGrad, c.tokens);
}
inline auto operandsOf(FeatureBagForward& c)
{
    return std::tie(c.output, c.table, c.features);
}
inline auto operandsOf(FeatureBagWeightGrad& c)
{
    return std::tie(c.outputGrad, c.tableGrad, c.features);
}
inline auto operandsOf(CrossEntropyForward& c)
{
    return std::tie(c.logitsToProbabilities, c.loss, c.targets);
}
inline auto operandsOf(CrossEntropyInputGrad& c)
{
    return std::tie(c.logitsGrad, c.probabilities, c.targets);
}
inline auto operandsOf(AttentionForward& c)
{
    return std::tie(c.output, c.query, c.key, c.value, c.saved);
}
inline auto operandsOf(AttentionInputGrad& c)
{
    return std::tie(c.queryKeyValueGrad, c.query, c.key, c.value, c.output, c.outputGrad, c.saved, c.scratch,
                    c.sequenceGradient);
}
inline auto operandsOf(SgdMomentumStep& c)
{
    return std::tie(c.parameters, c.gradients, c.momentum);
}
inline auto operandsOf(AdamWStep& c)
{
    return std::tie(c.parameters, c.gradients, c.firstMoment, c.secondMoment);
}
inline auto operandsOf(RmsPropStep& c)
{
    return std::tie(c.parameters, c.gradients, c.squares, c.last);
}
inline auto operandsOf(PredictMomentum& c)
{
    return std::tie(c.predicted, c.parameters, c.momentum);
}
inline auto operandsOf(PredictRmsProp& c)
{
    return std::tie(c.predicted, c.parameters, c.squares, c.last);
}
inline auto operandsOf(PredictAdam& c)
{
    return std::tie(c.predicted, c.parameters, c.firstMoment, c.secondMoment);
}
inline auto operandsOf(RmsNormForward& c)
{
    return std::tie(c.output, c.input, c.gamma);
}
inline auto operandsOf(RmsNormInputGrad& c)
{
    return std::tie(c.inputGrad, c.input, c.gamma, c.outputGrad);
}
inline auto operandsOf(RmsNormWeightGrad& c)
{
    return std::tie(c.input, c.outputGrad, c.gammaGrad);
}
inline auto operandsOf(Rotate& c)
{
    return std::tie(c.values);
}
inline auto operandsOf(GroupedAttentionForward& c)
{
    return std::tie(c.output, c.query, c.key, c.value, c.logSums, c.sinks);
}
inline auto operandsOf(GroupedAttentionInputGrad& c)
{
    return std::tie(c.queryGrad, c.keyGrad, c.valueGrad, c.query, c.key, c.value, c.output, c.outputGrad, c.logSums,
                    c.dots, c.sequenceGradient, c.sinks, c.sinkGrad);
}
inline auto operandsOf(ActivationForward& c)
{
    return std::tie(c.output, c.input);
}
inline auto operandsOf(ActivationInputGrad& c)
{
    return std::tie(c.inputGrad, c.input, c.outputGrad);
}
inline auto operandsOf(GatedForward& c)
{
    return std::tie(c.output, c.gate, c.factor);
}
inline auto operandsOf(GatedInputGrad& c)
{
    return std::tie(c.gateGrad, c.gate, c.factor, c.outputGrad, c.factorGrad);
}
inline auto operandsOf(RouteTokens& c)
{
    return std::tie(c.correction, c.logitsToProbabilities, c.weight, c.choice, c.row, c.begin, c.given);
}
inline auto operandsOf(RouteTokensGrad& c)
{
    return std::tie(c.outputGrad, c.expertOutput, c.logitsGrad, c.probabilities, c.choice, c.row, c.begin);
}
inline auto operandsOf(CopyToExperts& c)
{
    return std::tie(c.output, c.input, c.weight, c.row);
}
inline auto operandsOf(SumOfExperts& c)
{
    return std::tie(c.output, c.input, c.weight, c.row);
}
inline auto operandsOf(ExpertsForward& c)
{
    return std::tie(c.output, c.bias, c.input, c.weight, c.begin);
}
inline auto operandsOf(ExpertsInputGrad& c)
{
    return std::tie(c.inputGrad, c.outputGrad, c.weight, c.begin);
}
inline auto operandsOf(ExpertsWeightGrad& c)
{
    return std::tie(c.input, c.outputGrad, c.weightGrad, c.biasGrad, c.begin);
}
inline auto operandsOf(JoinKeys& c)
{
    return std::tie(c.keys, c.own, c.shared);
}
inline auto operandsOf(SplitKeysGrad& c)
{
    return std::tie(c.ownGrad, c.keysGrad, c.sharedGrad);
}
inline auto operandsOf(FromBytes& c)
{
    return std::tie(c.values, c.bytes);
}
inline auto operandsOf(Widen& c)
{
    return std::tie(c.to);
}
inline auto operandsOf(Narrow& c)
{
    return std::tie(c.from);
}
inline auto operandsOf(RoundToBf16& c)
{
    return std::tie(c.values);
}
inline auto operandsOf(SoftCap& c)
{
    return std::tie(c.values);
}
inline auto operandsOf(SoftCapGrad& c)
{
    return std::tie(c.grad, c.capped);
}
inline auto operandsOf(CountCopies& c)
{
    return std::tie(c.counts, c.begin);
}
inline auto operandsOf(BalanceStep& c)
{
    return std::tie(c.values, c.counts);
}
inline auto operandsOf(TensorCall&)
{
    return std::tie(); // pointers
}

template<class Call, class Use>
void forOperands(Call& call, Use use)
{
    std::apply([&](auto&... operands) { (use(operands), ...); }, operandsOf(call));
}

} // namespace pipewright::kernels
