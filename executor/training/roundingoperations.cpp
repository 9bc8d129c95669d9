// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/roundingoperations.h"

namespace pipewright {

namespace {

using namespace kernels;

void round(std::span<float> values)
{
    run(RoundToBf16{values});
}

// What an operation hands on, one line per call of the list.
void roundResults(const Copy&) {} // of values that are rounded
void roundResults(const Fill&) {} // with zeros
void roundResults(const Add& call)
{
    round(call.values);
}
void roundResults(const LinearForward& call)
{
    round(call.output);
}
void roundResults(const LinearInputGrad& call)
{
    round(call.inputGrad);
}
void roundResults(const LinearWeightGrad&) {}
void roundResults(const GeluForward& call)
{
    round(call.output);
}
void roundResults(const GeluInputGrad& call)
{
    round(call.inputGrad);
}
void roundResults(const LayerNormForward& call)
{
    round(call.output);
}
void roundResults(const LayerNormInputGrad& call)
{
    round(call.inputGrad);
}
void roundResults(const LayerNormWeightGrad&) {}
void roundResults(const EmbeddingForward& call)
{
    round(call.output);
}
void roundResults(const EmbeddingWeightGrad&) {}
void roundResults(const FeatureBagForward& call)
{
    round(call.output);
}
void roundResults(const FeatureBagWeightGrad&) {}
void roundResults(const CrossEntropyForward&) {}
void roundResults(const CrossEntropyInputGrad& call)
{
    round(call.logitsGrad);
}
void roundResults(const AttentionForward& call)
{
    round(call.saved);
    round(call.output);
}
void roundResults(const AttentionInputGrad& call)
{
    round(call.queryKeyValueGrad);
}
void roundResults(const SgdMomentumStep&) {}
void roundResults(const AdamWStep&) {}
void roundResults(const RmsPropStep&) {}
void roundResults(const PredictMomentum&) {}
void roundResults(const PredictRmsProp&) {}
void roundResults(const PredictAdam&) {}
void roundResults(const TensorCall& call)
{
    // The only ones of them among the layers' passes whose results are handed on.
    if (call.operation == TensorOperation::AddRepeated || call.operation == TensorOperation::Scale)
        round({call.out, static_cast<std::size_t>(call.size[0])});
}
void roundResults(const RmsNormForward& call)
{
    round(call.output);
}
void roundResults(const RmsNormInputGrad& call)
{
    round(call.inputGrad);
}
void roundResults(const RmsNormWeightGrad&) {}
void roundResults(const Rotate& call)
{
    round(call.values);
}
void roundResults(const GroupedAttentionForward& call)
{
    round(call.output);
}
void roundResults(const GroupedAttentionInputGrad& call)
{
    for (const std::span<float> grad : {call.queryGrad, call.keyGrad, call.valueGrad})
        round(grad);
}
void roundResults(const ActivationForward& call)
{
    round(call.output);
}
void roundResults(const ActivationInputGrad& call)
{
    round(call.inputGrad);
}
void roundResults(const GatedForward& call)
{
    round(call.output);
}
void roundResults(const GatedInputGrad& call)
{
    round(call.gateGrad);
    round(call.factorGrad);
}
void roundResults(const RouteTokens&) {}
void roundResults(const RouteTokensGrad&) {}
void roundResults(const SoftCap& call)
{
    round(call.values);
}
void roundResults(const SoftCapGrad& call)
{
    round(call.grad);
}
void roundResults(const CountCopies&) {}
void roundResults(const BalanceStep&) {}
void roundResults(const CopyToExperts& call)
{
    round(call.output);
}
void roundResults(const SumOfExperts& call)
{
    round(call.output);
}
void roundResults(const ExpertsForward& call)
{
    round(call.output);
}
void roundResults(const ExpertsInputGrad& call)
{
    round(call.inputGrad);
}
void roundResults(const ExpertsWeightGrad&) {}
void roundResults(const JoinKeys&) {} // copies
void roundResults(const SplitKeysGrad& call)
{
    round(call.sharedGrad);
}
void roundResults(const FromBytes& call)
{
    round(call.values);
}
void roundResults(const Widen&) {}
void roundResults(const Narrow&) {}
void roundResults(const RoundToBf16&) {}

} // namespace

void RoundingOperations::issue(Operation operation, const void* call, std::size_t) const
{
    visitOnHost(operation, call, [this](const auto& known, const char*) {
        m_exact.run(known);
        roundResults(known);
    });
}

} // namespace pipewright
