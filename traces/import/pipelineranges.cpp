// SPDX-License-Identifier: GPL-3.0-or-later
// Parses names of ranges into actions, and finds where a range's work begins by binary search in its thread's operators
// and its rank's receives.
#include "traces/import/pipelineranges.h"

#include "traces/import/zerobubblenames.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>
#include <unordered_map>

namespace pipewright {

namespace {

/// The actions of a range's name; empty for other names.
std::vector<PytorchAction> actionsOf(const std::string& name)
{
    std::vector<PytorchAction> actions;
    if (name.starts_with("PP:")) {
        if (parsePytorchCell(std::string_view(name).substr(3), PytorchLetters::Current, actions))
            actions.clear();
    } else if (const auto block = parseBlock(name); block && block->replica == 0 && isPass(block->op)) {
        PytorchAction action;
        action.type = computeType(block->op);
        action.stage = block->stage;
        action.microbatch = block->microbatch;
        actions.push_back(action);
    }
    return actions;
}

/// Marks the ranges that receive: their rank has a range that posts the receive, RECV_F for a forward, RECV_B for a
/// backward.
void markReceivers(const TraceData& data, std::vector<PipelineRange>& ranges)
{
    std::set<std::tuple<int, bool, int, int>> received; // rank, gradient, stage, microbatch
    for (const PipelineRange& range : ranges)
        for (const PytorchAction& action : range.actions)
            if (action.isTransfer() && !action.isSend())
                received.emplace(data.lanes[range.lane].rank, action.carriesGradient(), action.stage,
                                 action.microbatch);
    for (PipelineRange& range : ranges)
        range.receives = std::any_of(range.actions.begin(), range.actions.end(), [&](const PytorchAction& action) {
            const bool forward = action.type == PytorchAction::Type::F;
            return (forward || action.isBackward())
                   && received.contains({data.lanes[range.lane].rank, !forward, action.stage, action.microbatch});
        });
}

} // namespace

bool isPointToPoint(std::string_view name)
{
    return name == "c10d::send" || name == "c10d::recv_" || name == "c10d::recv_any_source_";
}

bool isNoWork(std::string_view name)
{
    return name.starts_with("c10d::") || name.starts_with("gloo:") || name == "record_param_comms"
           || name.starts_with("aten::empty") || name == "aten::detach" || name == "detach";
}

ProfilerSteps profilerSteps(const TraceData& data)
{
    ProfilerSteps steps;
    for (const Activity& a : data.activities) {
        const ActivityKind kind = a.kind();
        if (kind != ActivityKind::Range && kind != ActivityKind::Other && kind != ActivityKind::Operator)
            continue;
        const std::string& name = data.strings.text(a.name);
        int number = 0;
        if (name.starts_with("ProfilerStep#")
            && std::from_chars(name.data() + 13, name.data() + name.size(), number).ec == std::errc{})
            steps[data.lanes[a.lane].rank][number] = {a.start, a.end};
    }
    return steps;
}

NamedRanges namedRanges(TraceData& data)
{
    NamedRanges ranges;
    const ZeroBubbleNames zeroBubble(data);
    std::unordered_map<std::uint64_t, std::vector<PytorchAction>> actions; // by rank and name
    for (const Activity& a : data.activities) {
        if (!mayNameBlock(data, a))
            continue;
        const int rank = data.lanes[a.lane].rank;
        const auto [known, isNew] = actions.try_emplace(static_cast<std::uint64_t>(rank) << 32 | a.name);
        if (isNew) {
            if (const auto action = zeroBubble.actionOf(rank, a.name))
                known->second = {*action};
            else
                known->second = actionsOf(data.strings.text(a.name));
        }
        if (known->second.empty())
            continue;
        auto& to = a.kind() == ActivityKind::GpuRange ? ranges.device[{rank, a.name}] : ranges.host;
        PipelineRange& range = to.emplace_back();
        range.start = a.start;
        range.end = a.end;
        range.lane = a.lane;
        range.name = a.name;
        range.actions = known->second;
    }
    markReceivers(data, ranges.host);
    return ranges;
}

void beginAfterReceives(const TraceData& data, std::vector<PipelineRange>& ranges)
{
    std::unordered_map<std::uint32_t, std::vector<Nanoseconds>> work; // starts, by lane
    std::unordered_map<int, std::vector<Nanoseconds>> received;       // ends, by rank
    for (const Activity& a : data.activities) {
        const std::string& name = data.strings.text(a.name);
        if (name == "gloo:recv") // it ends when the program has waited for it, not when the data arrives
            received[data.lanes[a.lane].rank].push_back(a.end);
        else if (a.kind() == ActivityKind::Operator && !isNoWork(name))
            work[a.lane].push_back(a.start);
    }
    for (auto& [lane, starts] : work)
        std::sort(starts.begin(), starts.end());
    for (auto& [rank, ends] : received)
        std::sort(ends.begin(), ends.end());
    for (PipelineRange& range : ranges) {
        if (!range.receives)
            continue;
        range.waitsFrom = range.start;
        const std::vector<Nanoseconds>& starts = work[range.lane];
        const auto first = std::lower_bound(starts.begin(), starts.end(), range.start);
        const bool works = first != starts.end() && *first < range.end; // not the first stage's I
        const std::vector<Nanoseconds>& ends = received[data.lanes[range.lane].rank];
        const auto behind = std::upper_bound(ends.begin(), ends.end(), works ? *first : range.end);
        if (behind != ends.begin() && *(behind - 1) >= range.start)
            range.start = *(behind - 1);
        else if (works)
            range.start = *first;
    }
}

} // namespace pipewright
