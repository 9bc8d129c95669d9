// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/importedgathers.h"

#include "core/program/gatherplan.h"
#include "core/schedule/statedgather.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace pipewright {

namespace {

using Type = PytorchAction::Type;

/// The gathers of one rank, and what of its actions a design cannot say.
struct RankGathers {
    std::vector<StatedGather> gathers; ///< all with `before`
    std::set<int> again;               ///< stages that are gathered more than once
    int useless = 0, missing = 0, late = 0, sums = 0, misplacedSums = 0;
};

RankGathers gathersOf(const std::vector<PytorchAction>& row, const Schedule& schedule)
{
    RankGathers found;
    std::map<int, std::vector<std::size_t>> readers; // by stage, places in the row
    std::map<int, std::size_t> lastGradient;
    for (std::size_t i = 0; i < row.size(); ++i)
        if (row[i].isCompute()) {
            readers[row[i].stage].push_back(i);
            if (makesWeightGrad(row[i].block().op))
                lastGradient[row[i].stage] = i;
        }
    const auto isComputation = [](const PytorchAction& action) { return action.isCompute(); };
    const auto blockOf = [&schedule](const PytorchAction& action) {
        return schedule.block(action.block().op, action.stage, action.microbatch);
    };
    std::set<int> known, there;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const int stage = row[i].stage;
        const std::vector<std::size_t>& ofStage = readers[stage];
        const auto reader = std::upper_bound(ofStage.begin(), ofStage.end(), i);
        if (row[i].type == Type::Unshard) {
            if (reader == ofStage.end() || !there.insert(stage).second) {
                ++found.useless;
                continue;
            }
            if (!known.insert(stage).second)
                found.again.insert(stage);
            const auto before = std::find_if(row.begin() + static_cast<std::ptrdiff_t>(i), row.end(), isComputation);
            found.gathers.push_back({blockOf(row[*reader]), blockOf(*before)});
        } else if (row[i].isCompute()) {
            found.missing += known.contains(stage) && !there.contains(stage);
        } else if (row[i].type == Type::Reshard && there.erase(stage) > 0 && reader != ofStage.begin()) {
            found.late += std::any_of(row.begin() + static_cast<std::ptrdiff_t>(*std::prev(reader)) + 1,
                                      row.begin() + static_cast<std::ptrdiff_t>(i), isComputation);
        } else if (row[i].type == Type::ReduceGrad) {
            ++found.sums;
            const auto last = lastGradient.find(stage);
            found.misplacedSums += last == lastGradient.end() || last->second > i;
        }
    }
    return found;
}

/// The schedule with the rule whose gathers differ least from `wanted`, and those that do stated.
Schedule nearest(const Schedule& schedule, const std::vector<StatedGather>& wanted, const std::set<int>& again)
{
    Diagnostics faults;
    const OrderGraph graph(schedule, {}, true, faults);
    const std::vector<bool> all(static_cast<std::size_t>(schedule.stages()), true);
    std::optional<Schedule> best;
    constexpr int farthest = 4; // stages ahead: PyTorch's default is 2
    for (int ahead = 0; ahead <= farthest; ++ahead)
        for (const bool every : {true, false}) {
            Schedule candidate = schedule;
            candidate.zero.level = Zero::highestLevel;
            candidate.zero.prefetch = ahead;
            candidate.zero.reshard.every = every;
            if (!every)
                candidate.zero.reshard.stages.assign(again.begin(), again.end());
            const GatherPlan rule(candidate, all, graph);
            std::map<Block, Block> left; // gathers of the rule, by reader
            for (int device = 0; device < schedule.devices(); ++device)
                for (const GatherPlan::Gather& gather : rule.ofDevice(device))
                    left.emplace(graph.blocks[gather.reader], graph.blocks[gather.before]);
            for (const StatedGather& gather : wanted) {
                const auto ofRule = left.find(gather.reader);
                if (ofRule == left.end() || ofRule->second != *gather.before)
                    stateGather(candidate, gather);
                if (ofRule != left.end())
                    left.erase(ofRule);
            }
            for (const auto& [reader, before] : left)
                stateGather(candidate, {reader, std::nullopt});
            if (!best || candidate.gathers.size() < best->gathers.size())
                best = std::move(candidate);
        }
    return *best;
}

} // namespace

void stateGathers(Imported& imported, const PytorchRows& rows, const std::string& source)
{
    Schedule& schedule = imported.design.schedule;
    RankGathers all;
    for (const std::vector<PytorchAction>& row : rows) {
        RankGathers found = gathersOf(row, schedule);
        all.gathers.insert(all.gathers.end(), found.gathers.begin(), found.gathers.end());
        all.again.merge(found.again);
        all.useless += found.useless;
        all.missing += found.missing;
        all.late += found.late;
        all.sums += found.sums;
        all.misplacedSums += found.misplacedSums;
    }
    const auto note = [&](std::string what, std::string hint = {}) {
        imported.diagnostics.push_back({Severity::Note, source, std::move(what), std::move(hint)});
    };
    if (schedule.replicas() > 1 && !all.gathers.empty()) {
        note(
            fmt::format("{} UNSHARD actions are left out", all.gathers.size() + static_cast<std::size_t>(all.useless)));
    } else if (!all.again.empty()) {
        schedule = nearest(schedule, all.gathers, all.again);
        for (StageCosts& stage : imported.design.costs.stages)
            stage.gather = gatherTime;
        note(fmt::format("parameters are shared out ({}): {} gathers, {} of them stated since the rule puts them "
                         "elsewhere; each takes {}",
                         textOf(schedule.zero), all.gathers.size(), schedule.gathers.size(),
                         formatDuration(gatherTime)),
             "a model and --data-parallel N give them their times and bytes");
    } else if (!all.gathers.empty()) {
        note("every stage is gathered once a step, as PyTorch does without sharing out too",
             "for parameters that are shared out and held over the step: --zero 3 --reshard never");
    }
    if (all.useless > 0)
        note(fmt::format("{} UNSHARD actions of what is there already, or that no computation reads, are left out",
                         all.useless));
    if (all.missing > 0)
        imported.diagnostics.push_back(
            {Severity::Warning, source,
             fmt::format("{} computations stand behind the RESHARD of their stage: the design holds its parameters",
                         all.missing),
             "PyTorch stops there with an assertion: add UNSHARD before them"});
    if (all.late > 0 && !all.again.empty())
        note(fmt::format("{} RESHARD actions come later than the last computation that reads the parameters: they are "
                         "freed right behind it",
                         all.late));
    if (all.misplacedSums > 0)
        note(fmt::format("{} of {} REDUCE_GRAD actions stand before their stage's last backward: gradients are summed "
                         "behind it",
                         all.misplacedSums, all.sums));
}

} // namespace pipewright
