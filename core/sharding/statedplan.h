// SPDX-License-Identifier: GPL-3.0-or-later
// A stage's plan as a design states it: strategy, shares and program. Each may be left out and is then found by the
// search. An instruction is a line of text that names tensors, rules and relations. Its costs and its memory follow
// from the theory when it is read, so a line cannot state wrong ones:
//
//   "0.query.weight: load | | Identity"        "unreduced load": its consumer makes the gradient whole
//   "0.query: [*] I I -> [*] | Gather(0) Identity Identity | Gather(0)"
//   "0.add1: all_gather | Gather(0) | Identity"
#pragma once

#include "core/sharding/strategy.h"

#include <string>
#include <vector>

namespace pipewright {
struct Cluster;
struct Workload;
} // namespace pipewright

namespace pipewright::sharding {

struct PlanOptions;
struct ShardingPlan;
struct ShardingProgram;

struct StatedPlan {
    Strategy strategy = Strategy::Hap;
    std::vector<double> ratios;       ///< a share for each member; empty: the strategy's shares
    std::vector<std::string> program; ///< with ratios only; empty: searched
    bool operator==(const StatedPlan&) const = default;
};

std::vector<std::string> programLines(const ShardingProgram& program, const TensorGraph& graph);

/// Throws Error (where: "program.3") for a line that cannot be read or does not fit this graph at these ratios, that
/// uses a property which no earlier line makes, or that computes a node twice, and for nodes that no line computes.
/// O(lines · triples of a node).
ShardingProgram programOfLines(const std::vector<std::string>& lines, const Theory& theory);

/// A stated program unchanged, without a memory limit; otherwise planSharding() with the stated strategy and ratios.
/// Throws Error.
ShardingPlan planOf(const StatedPlan& stated, const TensorGraph& graph, const Machine& machine, PlanOptions options);

/// The complete plan in stated form.
StatedPlan statedPlan(const ShardingPlan& plan, const TensorGraph& graph, Strategy strategy);

/// Throws Error as planOf() does when the plan does not fit this stage of the model on this group; does not search.
void checkPlan(const StatedPlan& stated, const Workload& workload, int first, int count, const Cluster& group);

} // namespace pipewright::sharding
