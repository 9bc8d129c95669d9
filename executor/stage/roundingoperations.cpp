// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/stage/roundingoperations.h"

#include <algorithm>

namespace pipewright {

using namespace kernels;

/// Rounds the results of an operation; one overload per call of the list.
class RoundingOperations::Results {
public:
    explicit Results(const RoundingOperations& on) : m_on(on) {}

    void of(const Copy& call) const // the values are rounded already
    {
        m_on.written({static_cast<const float*>(call.to), call.bytes / sizeof(float)});
    }
    void of(const Fill& call) const { m_on.written(call.values); } // with zeros
    void of(const Add& call) const { round(call.values); }
    void of(const LinearForward& call) const
    {
        round(call.output);
        round(call.activated);
    }
    void of(const LinearInputGrad& call) const { round(call.inputGrad); }
    void of(const LinearWeightGrad&) const {}
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
        if (m_on.keepsProbabilities())
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
        // The only tensor operations in the layers' passes whose results go on to other operations.
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
    void of(const RouteTokensGrad& call) const { round(call.logitsGrad); }
    void of(const SoftCap& call) const { round(call.values); }
    void of(const SoftCapGrad& call) const { round(call.grad); }
    void of(const CountCopies&) const {}
    void of(const BalanceStep&) const {}
    void of(const CopyToExperts& call) const { round(call.output); }
    void of(const SumOfExperts& call) const { round(call.output); }
    void of(const ExpertsForward& call) const { round(call.output); }
    void of(const ExpertsInputGrad& call) const { round(call.inputGrad); }
    void of(const ExpertsWeightGrad&) const {}
    void of(const JoinKeys& call) const { m_on.written(call.keys); } // copies
    void of(const SplitKeysGrad& call) const
    {
        m_on.written(call.ownGrad);
        round(call.sharedGrad);
    }
    void of(const FromBytes& call) const { round(call.values); }
    void of(const Widen&) const {}
    void of(const Narrow&) const {}
    void of(const RoundToBf16&) const {}

private:
    void round(std::span<float> values) const { m_on.rounded(values); }

    const RoundingOperations& m_on;
};

namespace {

bool areWithin(std::span<const float> values, std::span<const float> whole)
{
    return !values.empty() && values.data() >= whole.data()
           && values.data() + values.size() <= whole.data() + whole.size();
}

bool overlap(std::span<const float> a, std::span<const float> b)
{
    return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

HeldTwice part(const HeldTwice& of, std::size_t first, std::size_t count)
{
    HeldTwice result = of;
    result.wide = of.wide.subspan(first, count);
    result.stored = of.stored + first;
    return result;
}

} // namespace

HeldTwice* RoundingOperations::cut(std::span<const float> values) const
{
    const auto found =
        std::find_if(m_held.begin(), m_held.end(), [&](const HeldTwice& each) { return areWithin(values, each.wide); });
    if (found == m_held.end())
        return nullptr;
    const HeldTwice whole = *found;
    const auto first = static_cast<std::size_t>(values.data() - whole.wide.data()), end = first + values.size();
    auto at = found;
    *at = part(whole, first, values.size());
    if (end < whole.wide.size())
        at = m_held.insert(at + 1, part(whole, end, whole.wide.size() - end)) - 1;
    if (first > 0)
        at = m_held.insert(at, part(whole, 0, first)) + 1;
    return &*at;
}

void RoundingOperations::written(std::span<const float> values) const
{
    if (HeldTwice* const own = cut(values)) {
        own->isStored = false;
        return;
    }
    for (HeldTwice& each : m_held) // the entries that it overlaps
        if (overlap(values, each.wide))
            each.isStored = false;
}

void RoundingOperations::rounded(std::span<float> values) const
{
    const bool isWide =
        std::any_of(m_wide.begin(), m_wide.end(), [&](std::span<const float> each) { return areWithin(values, each); });
    if (values.empty() || isWide)
        return;
    HeldTwice* const own = cut(values);
    if (!own || !own->mayStore) {
        m_exact.run(RoundToBf16{values});
        written(values);
        return;
    }
    m_exact.run(RoundToBf16{values, {own->stored, values.size()}});
    own->isStored = true;
}

std::uint16_t* RoundingOperations::stored(std::span<const float> values) const
{
    // After a cut, the rest of the same tensor is the next entry.
    std::uint16_t* first = nullptr;
    std::size_t done = 0;
    for (HeldTwice& each : m_held) {
        if (done == values.size())
            break;
        const std::span<const float> left = values.subspan(done);
        const bool isWithin = left.data() >= each.wide.data() && left.data() < each.wide.data() + each.wide.size();
        if (!isWithin) {
            if (done > 0)
                return nullptr;
            continue;
        }
        const auto skipped = static_cast<std::size_t>(left.data() - each.wide.data());
        if (done > 0 && each.stored != first + done)
            return nullptr;
        if (!each.isStored) {
            if (!each.mayStore)
                return nullptr;
            m_exact.run(Narrow{each.wide, {each.stored, each.wide.size()}});
            each.isStored = true;
        }
        if (done == 0)
            first = each.stored + skipped;
        done += std::min(left.size(), each.wide.size() - skipped);
    }
    return done == values.size() ? first : nullptr;
}

void RoundingOperations::issue(kernels::Operation operation, const void* call, std::size_t, StoredOperands) const
{
    visit(operation, call, [this](const auto& known, const char*) {
        m_exact.run(known);
        Results(*this).of(known);
    });
}

} // namespace pipewright
