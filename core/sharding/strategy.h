// SPDX-License-Identifier: GPL-3.0-or-later
// Ways to share out a stage that can be asked for by name: what the synthesis finds, and the plans that it is measured
// against. Each leaves the synthesis only some of the rules, and fixes the shares or lets them be found, so that a
// baseline is planned, costed and run by the same means as any other plan. What a name means cannot always be done (one
// sequence has no batch to cut): then it is refused, and nothing else is put in its place.
#pragma once

#include "core/sharding/relation.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pipewright::sharding {

class TensorGraph;
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

/// Who says how much of a stage each member has.
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

/// The rules that the strategy leaves. Throws Error (where: "plan") when it cannot do a node of the graph.
Theory theoryOf(const TensorGraph& graph, const Machine& machine, const Ratios& ratios, RuleSet rules,
                Strategy strategy);

} // namespace pipewright::sharding
