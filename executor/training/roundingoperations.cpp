// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/roundingoperations.h"

namespace pipewright {

namespace {

using namespace kernels;

/// Rounds what an operation hands on: a line per call of the list.
class Results {
public:
    explicit Results(const Operations& on) : m_on(on) {}

    void of(const Copy&) const {} // of values that are rounded
    void of(const Fill&) const {} // with zeros
    void of(const Add& call) const { round(call.values); }
    void of(const LinearForward& call) const { round(call.output); }
    void of(const LinearInputGrad& call) const { round(call.inputGrad); }
    void of(const LinearWeightGrad&) const {}
    void of(const GeluForward& call) const { round(call.output); }
    void of(const GeluInputGrad& call) const { round(call.inputGrad); }
    void of(const LayerNormForward& call) const { round(call.output); }
    void of(const LayerNormInputGrad& call) const { round(call.inputGrad); }
    void of(const LayerNormWeightGrad&) const {}
    void of(const EmbeddingForward& call) const { round(call.output); }
    void of(const EmbeddingWeightGrad&) const {}
    void of(const FeatureBagForward& call) const { round(call.output); }
    void of(const FeatureBagWeightGrad&) const {}
    void of(const CrossEntropyForward&) const {}
    void of(const CrossEntropyInputGrad& call) const { round(call.logitsGrad); }
    void of(const AttentionForward& call) const
    {
        round(call.saved);
        round(call.output);
    }
    void of(const AttentionInputGrad& call) const { round(call.queryKeyValueGrad); }
    void of(const SgdMomentumStep&) const {}
    void of(const AdamWStep&) const {}
    void of(const RmsPropStep&) const {}
    void of(const PredictMomentum&) const {}
    void of(const PredictRmsProp&) const {}
    void of(const PredictAdam&) const {}
    void of(const TensorCall& call) const
    {
        // The only ones of them among the layers' passes whose results are handed on.
        if (call.operation == TensorOperation::AddRepeated || call.operation == TensorOperation::Scale)
            round({call.out, static_cast<std::size_t>(call.size[0])});
    }
    void of(const RmsNormForward& call) const { round(call.output); }
    void of(const RmsNormInputGrad& call) const { round(call.inputGrad); }
    void of(const RmsNormWeightGrad&) const {}
    void of(const Rotate& call) const { round(call.values); }
    void of(const GroupedAttentionForward& call) const { round(call.output); }
    void of(const GroupedAttentionInputGrad& call) const
    {
        for (const std::span<float> grad : {call.queryGrad, call.keyGrad, call.valueGrad})
            round(grad);
    }
    void of(const ActivationForward& call) const { round(call.output); }
    void of(const ActivationInputGrad& call) const { round(call.inputGrad); }
    void of(const GatedForward& call) const { round(call.output); }
    void of(const GatedInputGrad& call) const
    {
        round(call.gateGrad);
        round(call.factorGrad);
    }
    void of(const RouteTokens&) const {}
    void of(const RouteTokensGrad&) const {}
    void of(const SoftCap& call) const { round(call.values); }
    void of(const SoftCapGrad& call) const { round(call.grad); }
    void of(const CountCopies&) const {}
    void of(const BalanceStep&) const {}
    void of(const CopyToExperts& call) const { round(call.output); }
    void of(const SumOfExperts& call) const { round(call.output); }
    void of(const ExpertsForward& call) const { round(call.output); }
    void of(const ExpertsInputGrad& call) const { round(call.inputGrad); }
    void of(const ExpertsWeightGrad&) const {}
    void of(const JoinKeys&) const {} // copies
    void of(const SplitKeysGrad& call) const { round(call.sharedGrad); }
    void of(const FromBytes& call) const { round(call.values); }
    void of(const Widen&) const {}
    void of(const Narrow&) const {}
    void of(const RoundToBf16&) const {}

private:
    void round(std::span<float> values) const { m_on.run(RoundToBf16{values}); }

    const Operations& m_on;
};

} // namespace

void RoundingOperations::issue(Operation operation, const void* call, std::size_t) const
{
    visit(operation, call, [this](const auto& known, const char*) {
        m_exact.run(known);
        Results(m_exact).of(known);
    });
}

} // namespace pipewright
