// SPDX-License-Identifier: GPL-3.0-or-later
// Named strategies to shard a stage: the synthesis itself, and the baselines for comparison. A strategy restricts the
// rules of the synthesis and fixes the shares or leaves them to be found, so a baseline is planned, costed and run like
// any other plan. A strategy that is impossible for a model (a single sequence has no batch to cut) is refused and not
// replaced by another one.
#pragma once

#include "core/sharding/relation.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pipewright {
class TensorGraph;
}

namespace pipewright::sharding {

class Theory;
enum class RuleSet;
struct Machine;

enum class Strategy : std::uint8_t {
    Hap,              ///< all rules, shares found (arXiv 2401.05965)
    Even,             ///< all rules, equal shares
    Proportional,     ///< all rules, shares by rate
    DataParallel,     ///< the batch is cut, shares by rate: that paper's DP-CP
    DataParallelEven, ///< the batch is cut, equal shares: its DP-EV
    DeepSpeed,        ///< equal cuts of the batch, parameters in pieces (ZeRO, arXiv 1910.02054), experts on members
    Tag,              ///< the batch is cut by rate; every gradient summed the cheapest way (arXiv 2302.06126)
    Megatron,         ///< matrices are cut by columns, then by rows (arXiv 1909.08053)
    MegatronSequence, ///< and tokens are cut between them (arXiv 2205.05198)
};
inline constexpr int strategyCount = 9;

/// How the members' shares of a stage are determined.
enum class ShareChoice : std::uint8_t { Found, Even, ByRate };

struct StrategyFacts {
    Strategy strategy;
    std::string_view name;  ///< "data-parallel", in files and on the command line
    std::string_view title; ///< "data parallel, by rate"
    ShareChoice shares;
};
/// In the order of the enumeration.
const std::array<StrategyFacts, strategyCount>& strategies();
const StrategyFacts& factsOf(Strategy strategy);
std::string_view nameOf(Strategy strategy); ///< empty behind the last one
std::optional<Strategy> strategyNamed(std::string_view name);

/// The theory restricted to the strategy's rules. Throws Error (where: "plan") when no rule is left for a node.
Theory theoryOf(const TensorGraph& graph, const Machine& machine, const Ratios& ratios, RuleSet rules,
                Strategy strategy);

} // namespace pipewright::sharding
