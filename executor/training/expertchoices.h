// SPDX-License-Identifier: GPL-3.0-or-later
// Which experts the tokens of a run visited. A GPU sums in another order than the host, so scores differ in their last
// digits, and a token whose two best experts score almost alike may go to the other one. Its gradients then differ by
// more than any rounding, though neither run is wrong. So the run keeps its choices and the reference follows them.
// Where a choice differs from the reference's own, the reference first checks whether score differences within rounding
// could explain it.
#pragma once

#include "core/model/workload.h"
#include "kernels/operations.h"

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace pipewright {

/// Expert numbers that a forward of these layers chooses per microbatch: tokens · experts per token, summed over the
/// layers with experts.
std::int64_t choicesOf(std::span<const Layer> layers);

/// The experts that a call chooses, per token; empty: it routes no tokens.
template<class Call>
std::span<std::int32_t> chosenBy(const Call& call)
{
    if constexpr (std::is_same_v<Call, kernels::RouteTokens>)
        return call.choice;
    else
        return {};
}

/// At index stage · microbatches + microbatch: the choices of that forward, layer after layer.
using ExpertChoices = std::vector<std::vector<std::int32_t>>;

/// How the followed choices compare with the reference's own.
struct RoutingCheck {
    std::int64_t tokens = 0;      ///< choices of a token in a layer
    std::int64_t otherwise = 0;   ///< of these, those with other experts than the reference's own
    std::int64_t unexplained = 0; ///< of these, those that roundings cannot explain
    std::string first{};          ///< where the first of the unexplained is
};

/// The host's operations, but tokens visit the experts that they visited in the run.
class FollowingChoices final : public kernels::Operations {
public:
    /// `tolerance`: how far a score may be off, as a part of the token's largest probability. `where` begins the place
    /// of a finding.
    FollowingChoices(std::span<const std::int32_t> kept, double tolerance, std::string where, RoutingCheck& check)
        : m_left(kept), m_tolerance(tolerance), m_where(std::move(where)), m_check(check)
    {
    }
    bool keepsProbabilities() const override { return kernels::hostOperations().keepsProbabilities(); }

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes,
               kernels::StoredOperands stored) const override;

private:
    void route(const kernels::RouteTokens& call) const;
    /// Judges the run's choices against those made here. Returns the experts that tokens are to visit; empty: those
    /// chosen here.
    std::vector<std::int32_t> judged(const kernels::Router& router, std::span<const float> correction,
                                     std::span<const float> probabilities, std::span<const std::int32_t> chosen) const;

    mutable std::span<const std::int32_t> m_left;
    double m_tolerance;
    std::string m_where;
    RoutingCheck& m_check;
};

/// What a reference follows, step by step; it is without where nothing was kept.
struct FollowedRun {
    ExpertChoices choices;
    double tolerance;
    RoutingCheck check{};

    /// For the forward of a stage on one of `microbatches` microbatches.
    FollowingChoices of(int stage, int microbatch, int microbatches);
};

} // namespace pipewright
