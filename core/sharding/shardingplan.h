// SPDX-License-Identifier: GPL-3.0-or-later
// A program together with its ratios. Synthesis finds the best program for given ratios, the linear program the best
// ratios for a given program; they alternate until the cost no longer falls (arXiv 2401.05965). The pair found is a
// local optimum, so the search starts from several ratios. Every program is kept with the ratios it was costed at.
#pragma once

#include "core/sharding/ratios.h"
#include "core/sharding/strategy.h"
#include "core/sharding/synthesis.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::sharding {

struct PlanOptions {
    Strategy strategy = Strategy::Hap;
    std::optional<Ratios> ratios; ///< given: only the program is searched; overrides the strategy's shares
    RuleSet rules = RuleSet::All;
    std::int64_t maxExpansions = 1'000'000; ///< of one search
    Deadline deadline{};
};

struct PlanRound {
    std::string start;   ///< the start ratios of this series of rounds: "proportional"
    double searched = 0; ///< seconds, of the program found for the round's ratios
    double improved = 0; ///< of the same program at its best ratios
};

struct ShardingPlan {
    ShardingProgram program;
    Ratios ratios;
    double cost = 0;             ///< seconds a training step
    double bound = 0;            ///< no program within memory costs less at these ratios
    bool proved = false;         ///< the search for these ratios ran to its end
    double gap = 0;              ///< (cost − bound) / cost
    std::int64_t expansions = 0; ///< of all searches
    std::vector<PlanRound> rounds;
    std::vector<double> memory; ///< bytes per device
};

/// Throws Error: what machineOf and theoryOf() throw, ratios that do not fit the devices, a model that no ratios
/// and no program bring within the devices' memory (with what is needed).
ShardingPlan planSharding(const TensorGraph& graph, const Machine& machine, const PlanOptions& options = {});

/// Throws Error (where: "ratios") for ratios that are not of this graph on these devices.
void checkRatios(const Ratios& ratios, const TensorGraph& graph, const Machine& machine);
void checkShares(const std::vector<double>& shares, const Machine& machine);

/// Another strategy and its cost at its own best ratios.
struct Alternative {
    std::string name; ///< "even ratios", "data parallel", "linear [768, 3072] by [o]"
    ShardingProgram program;
    Ratios ratios;
    double cost = 0;
    bool fits = true; ///< within the devices' memory
    Strategy strategy = Strategy::Hap;
};

/// Runners-up, cheapest first: for small graphs the next best programs; for larger ones the best program with another
/// rule for all nodes of one kind. commonStrategies(): the strategies of strategy.h that are possible for this graph,
/// in their order. Both return the results so far at the deadline.
std::vector<Alternative> runnersUp(const TensorGraph& graph, const Machine& machine, const ShardingPlan& plan,
                                   const PlanOptions& options, int count);
std::vector<Alternative> commonStrategies(const TensorGraph& graph, const Machine& machine, const PlanOptions& options);

} // namespace pipewright::sharding
