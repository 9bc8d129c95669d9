// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/collectiveorder.h"

#include "core/program/compile.h"
#include "core/program/memberprogram.h"
#include "core/program/transferedits.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// A place inside a block: the block's task, and the number of a collective.
using Place = std::pair<TaskId, int>;

[[noreturn]] void refuse(const TransferPrecedence& pair, const std::string& why, const std::string& remedy)
{
    throw Error("schedule.transfer_order",
                fmt::format("{} before {}: {}", textOf(pair.first), textOf(pair.second), why), remedy);
}

} // namespace

CollectiveOrder::CollectiveOrder(const Program& groups, const GroupStages& stages,
                                 const std::vector<TransferPrecedence>& stated)
{
    const auto namesCollective = [](const TransferPrecedence& pair) {
        return pair.first.isCollective() || pair.second.isCollective();
    };
    if (std::none_of(stated.begin(), stated.end(), namesCollective))
        return;
    const std::vector<StatedPair> pairs = statedPairs(groups, stated);
    const auto collectivesOf = [&](TaskId block, Op op) {
        const Task& task = groups.tasks[block];
        const auto copy = static_cast<std::size_t>(stages.copyOf(task.stage, task.replica));
        return static_cast<int>(stages.stages[copy].passes[indexOf(op)].collectives.size());
    };
    const auto allOf = [&](TaskId block) { return collectivesOf(block, groups.tasks[block].op); };
    // The number of collectives before the block's result is complete.
    const auto untilWhole = [&](TaskId block) {
        return groups.tasks[block].op == Op::B ? collectivesOf(block, Op::I) : allOf(block);
    };
    std::map<TaskId, Place> behind; // per transfer: the last collective that it is stated to follow
    std::map<TaskId, const TransferPrecedence*> early;
    for (const StatedPair& pair : pairs) {
        if (!namesCollective(*pair.names))
            continue;
        const bool isFirst = pair.names->first.isCollective();
        const TaskId block = isFirst ? pair.before : pair.after, transfer = isFirst ? pair.after : pair.before;
        const int index = (isFirst ? pair.names->first : pair.names->second).collective;
        if (stages.membersOfDevice[static_cast<std::size_t>(groups.tasks[block].device)] == 1)
            continue;
        const int count = allOf(block);
        if (index >= count)
            refuse(*pair.names,
                   count == 0
                       ? fmt::format("by the plan of stage {} the block has no collective", groups.tasks[block].stage)
                       : fmt::format("by the plan of stage {} the block has {} collectives, counted from 0",
                                     groups.tasks[block].stage, count),
                   "remove the pair from \"transfer_order\", or name one of the block's collectives");
        const bool isOwn = groups.afterData[transfer] == block;
        if (isFirst && !isOwn) {
            Place& place = behind.try_emplace(transfer, block, index).first->second;
            place = std::max(place, Place{block, index});
        } else if (!isFirst && isOwn) {
            const int whole = untilWhole(block);
            if (index < whole)
                refuse(*pair.names,
                       whole == count ? "what is sent is made behind the last collective of its block"
                                      : fmt::format("the input gradient is whole behind collective {}", whole - 1),
                       whole == count ? "remove the pair from \"transfer_order\""
                                      : fmt::format("name collective {} or a later one", whole));
            early.emplace(transfer, pair.names);
        }
    }
    for (const auto& [transfer, names] : early) {
        const TaskId block = groups.afterData[transfer];
        for (const StatedPair& pair : pairs) {
            const bool ofBlock = pair.before == block && pair.names->first.collective < untilWhole(block);
            if (pair.after == transfer && pair.before >= block && !ofBlock)
                refuse(*names,
                       fmt::format("{} is stated to come before that transfer, too, and does not come before the "
                                   "collective",
                                   textOf(pair.names->first)),
                       "remove one of the two pairs from \"transfer_order\"");
        }
        m_early[block].push_back(transfer);
    }
    for (const auto& each : behind) {
        const auto& [transfer, place] = each;
        // The transfer must also wait for a later task than that block, so it keeps its place in the groups' order.
        const bool waitsLonger = std::any_of(pairs.begin(), pairs.end(), [&each](const StatedPair& pair) {
            return pair.after == each.first && !pair.names->first.isCollective() && pair.before > each.second.first;
        });
        if (!waitsLonger && groups.tasks[transfer].op != Op::U)
            m_behind[place].push_back(transfer);
    }
}

const std::vector<TaskId>& CollectiveOrder::leavingBehind(TaskId block, int collective) const
{
    static const std::vector<TaskId> nothing;
    const auto found = m_behind.find({block, collective});
    return found == m_behind.end() ? nothing : found->second;
}

EditResult moveCollective(const Design& design, const Transfer& collective, const std::vector<Transfer>& passed,
                          bool later)
{
    if (passed.empty())
        return {design.schedule,
                {{Severity::Error, textOf(collective),
                  "its group sends nothing in between: collectives come in the order of their blocks, and within a "
                  "block in that of the stage's plan",
                  "move the block, or the lines of the stage's plan"}}};
    EditResult result{design.schedule, {}};
    for (const Transfer& transfer : passed) {
        // Removes the opposite pair first. Without it most transfers are already at the wanted place.
        const TransferPrecedence wanted =
            later ? TransferPrecedence{transfer, collective} : TransferPrecedence{collective, transfer};
        if (!forget(result.schedule, wanted.second, wanted.first))
            state(result.schedule, wanted.first, wanted.second);
    }
    try {
        const GroupStages stages = groupStages(design);
        (void)memberProgram(compile(result.schedule, design.costs, design.dataflow), stages, design.costs,
                            result.schedule.transferOrder);
    } catch (const Error& error) {
        return {design.schedule, error.diagnostics()};
    }
    return result;
}

} // namespace pipewright
