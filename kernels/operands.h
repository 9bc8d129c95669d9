// SPDX-License-Identifier: GPL-3.0-or-later
// The operands of each operation, one after another, for those that treat all operations alike. Those of floating-point
// values have a number each, in this order: a device that computes with bf16 as it lies in memory is told by number
// which of them do so. Whole numbers are operands too, and have none.
#pragma once

#include "kernels/calls.h"

#include <cstdint>

namespace pipewright::kernels {

/// Bit i: operand number i has 16-bit patterns where its span says floats, as many. The kernels take them for those of
/// one kind: results, what they are made of and parameters are stored alike, sums over a microbatch are fp32.
using StoredOperands = std::uint32_t;

// clang-format off
template<class Use> void forOperands(Copy&, Use) {} // of bytes
template<class Use> void forOperands(Fill& c, Use use) { use(c.values); }
template<class Use> void forOperands(Add& c, Use use) { use(c.values); use(c.addend); }
template<class Use> void forOperands(LinearForward& c, Use use) { use(c.output); use(c.bias); use(c.activated); use(c.input); use(c.weight); }
template<class Use> void forOperands(LinearInputGrad& c, Use use) { use(c.inputGrad); use(c.activationInput); use(c.outputGrad); use(c.weight); }
template<class Use> void forOperands(LinearWeightGrad& c, Use use) { use(c.weightGrad); use(c.biasGrad); use(c.input); use(c.outputGrad); }
template<class Use> void forOperands(GeluForward& c, Use use) { use(c.output); use(c.input); }
template<class Use> void forOperands(GeluInputGrad& c, Use use) { use(c.inputGrad); use(c.input); use(c.outputGrad); }
template<class Use> void forOperands(LayerNormForward& c, Use use) { use(c.output); use(c.input); use(c.gamma); use(c.beta); }
template<class Use> void forOperands(LayerNormInputGrad& c, Use use) { use(c.inputGrad); use(c.input); use(c.gamma); use(c.outputGrad); }
template<class Use> void forOperands(LayerNormWeightGrad& c, Use use) { use(c.input); use(c.outputGrad); use(c.gammaGrad); use(c.betaGrad); }
template<class Use> void forOperands(EmbeddingForward& c, Use use) { use(c.output); use(c.table); use(c.positions); use(c.tokens); }
template<class Use> void forOperands(EmbeddingWeightGrad& c, Use use) { use(c.outputGrad); use(c.tableGrad); use(c.positionsGrad); use(c.tokens); }
template<class Use> void forOperands(FeatureBagForward& c, Use use) { use(c.output); use(c.table); use(c.features); }
template<class Use> void forOperands(FeatureBagWeightGrad& c, Use use) { use(c.outputGrad); use(c.tableGrad); use(c.features); }
template<class Use> void forOperands(CrossEntropyForward& c, Use use) { use(c.logitsToProbabilities); use(c.loss); use(c.targets); }
template<class Use> void forOperands(CrossEntropyInputGrad& c, Use use) { use(c.logitsGrad); use(c.probabilities); use(c.targets); }
template<class Use> void forOperands(AttentionForward& c, Use use) { use(c.output); use(c.query); use(c.key); use(c.value); use(c.saved); }
template<class Use> void forOperands(AttentionInputGrad& c, Use use) { use(c.queryKeyValueGrad); use(c.query); use(c.key); use(c.value); use(c.output); use(c.outputGrad); use(c.saved); use(c.scratch); use(c.sequenceGradient); }
template<class Use> void forOperands(SgdMomentumStep& c, Use use) { use(c.parameters); use(c.gradients); use(c.momentum); }
template<class Use> void forOperands(AdamWStep& c, Use use) { use(c.parameters); use(c.gradients); use(c.firstMoment); use(c.secondMoment); }
template<class Use> void forOperands(RmsPropStep& c, Use use) { use(c.parameters); use(c.gradients); use(c.squares); use(c.last); }
template<class Use> void forOperands(PredictMomentum& c, Use use) { use(c.parameters); use(c.momentum); }
template<class Use> void forOperands(PredictRmsProp& c, Use use) { use(c.parameters); use(c.squares); use(c.last); }
template<class Use> void forOperands(PredictAdam& c, Use use) { use(c.parameters); use(c.firstMoment); use(c.secondMoment); }
template<class Use> void forOperands(RmsNormForward& c, Use use) { use(c.output); use(c.input); use(c.gamma); }
template<class Use> void forOperands(RmsNormInputGrad& c, Use use) { use(c.inputGrad); use(c.input); use(c.gamma); use(c.outputGrad); }
template<class Use> void forOperands(RmsNormWeightGrad& c, Use use) { use(c.input); use(c.outputGrad); use(c.gammaGrad); }
template<class Use> void forOperands(Rotate& c, Use use) { use(c.values); }
template<class Use> void forOperands(GroupedAttentionForward& c, Use use) { use(c.output); use(c.query); use(c.key); use(c.value); use(c.logSums); use(c.sinks); }
template<class Use> void forOperands(GroupedAttentionInputGrad& c, Use use) { use(c.queryGrad); use(c.keyGrad); use(c.valueGrad); use(c.query); use(c.key); use(c.value); use(c.output); use(c.outputGrad); use(c.logSums); use(c.dots); use(c.sequenceGradient); use(c.sinks); use(c.sinkGrad); }
template<class Use> void forOperands(ActivationForward& c, Use use) { use(c.output); use(c.input); }
template<class Use> void forOperands(ActivationInputGrad& c, Use use) { use(c.inputGrad); use(c.input); use(c.outputGrad); }
template<class Use> void forOperands(GatedForward& c, Use use) { use(c.output); use(c.gate); use(c.factor); }
template<class Use> void forOperands(GatedInputGrad& c, Use use) { use(c.gateGrad); use(c.gate); use(c.factor); use(c.outputGrad); use(c.factorGrad); }
template<class Use> void forOperands(RouteTokens& c, Use use) { use(c.correction); use(c.logitsToProbabilities); use(c.weight); use(c.choice); use(c.row); use(c.begin); use(c.given); }
template<class Use> void forOperands(RouteTokensGrad& c, Use use) { use(c.outputGrad); use(c.expertOutput); use(c.logitsGrad); use(c.probabilities); use(c.choice); use(c.row); use(c.begin); }
template<class Use> void forOperands(CopyToExperts& c, Use use) { use(c.output); use(c.input); use(c.weight); use(c.row); }
template<class Use> void forOperands(SumOfExperts& c, Use use) { use(c.output); use(c.input); use(c.weight); use(c.row); }
template<class Use> void forOperands(ExpertsForward& c, Use use) { use(c.output); use(c.bias); use(c.input); use(c.weight); use(c.begin); }
template<class Use> void forOperands(ExpertsInputGrad& c, Use use) { use(c.inputGrad); use(c.outputGrad); use(c.weight); use(c.begin); }
template<class Use> void forOperands(ExpertsWeightGrad& c, Use use) { use(c.input); use(c.outputGrad); use(c.weightGrad); use(c.biasGrad); use(c.begin); }
template<class Use> void forOperands(JoinKeys& c, Use use) { use(c.keys); use(c.own); use(c.shared); }
template<class Use> void forOperands(SplitKeysGrad& c, Use use) { use(c.ownGrad); use(c.keysGrad); use(c.sharedGrad); }
template<class Use> void forOperands(FromBytes& c, Use use) { use(c.values); use(c.bytes); }
template<class Use> void forOperands(Widen& c, Use use) { use(c.to); }
template<class Use> void forOperands(Narrow& c, Use use) { use(c.from); }
template<class Use> void forOperands(RoundToBf16& c, Use use) { use(c.values); }
template<class Use> void forOperands(SoftCap& c, Use use) { use(c.values); }
template<class Use> void forOperands(SoftCapGrad& c, Use use) { use(c.grad); use(c.capped); }
template<class Use> void forOperands(CountCopies& c, Use use) { use(c.counts); use(c.begin); }
template<class Use> void forOperands(BalanceStep& c, Use use) { use(c.values); use(c.counts); }
template<class Use> void forOperands(TensorCall&, Use) {} // of pointers
// clang-format on

} // namespace pipewright::kernels
