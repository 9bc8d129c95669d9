// SPDX-License-Identifier: GPL-3.0-or-later
// A stage's plan as a design states it: strategy, shares and program, each of which may be left out and is then found.
// An instruction is a line of text that names tensors, rules and relations; what it costs and keeps follows from the
// theory when it is read, so that a line cannot state what is not so:
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
    std::vector<double> ratios;       ///< a share for each member; empty: as the strategy has it
    std::vector<std::string> program; ///< with ratios only; empty: searched
    bool operator==(const StatedPlan&) const = default;
};

std::vector<std::string> programLines(const ShardingProgram& program, const TensorGraph& graph);

/// Throws Error (where: "program.3") for a line that is none, or is not of this graph at these ratios, uses what no
/// line before it makes, or makes a node again, and for nodes that no line makes. O(lines · triples of a node).
ShardingProgram programOfLines(const std::vector<std::string>& lines, const Theory& theory);

/// A stated program as it stands, its memory unlimited; else planSharding() with what is stated. Throws Error.
ShardingPlan planOf(const StatedPlan& stated, const TensorGraph& graph, const Machine& machine, PlanOptions options);

/// All of it stated.
StatedPlan statedPlan(const ShardingPlan& plan, const TensorGraph& graph, Strategy strategy);

/// Throws Error as planOf() does where the plan is not of this stage of the model on this group; does not search.
void checkPlan(const StatedPlan& stated, const Workload& workload, int first, int count, const Cluster& group);

} // namespace pipewright::sharding
