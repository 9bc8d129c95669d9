// SPDX-License-Identifier: GPL-3.0-or-later
// Sorts the slices concerned by lane and start, then sweeps them once.
#include "traces/import/lanechecks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pipewright {

namespace {

/// The slices that `wanted` takes, by lane, then start; of those that start together the longest first.
template<class Wanted>
std::vector<std::uint32_t> inOrder(const TraceData& data, Wanted wanted)
{
    std::vector<std::uint32_t> order;
    for (std::size_t i = 0; i < data.activities.size(); ++i)
        if (wanted(data.activities[i]))
            order.push_back(static_cast<std::uint32_t>(i));
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        const Activity &x = data.activities[a], &y = data.activities[b];
        return x.lane != y.lane ? x.lane < y.lane : x.start != y.start ? x.start < y.start : x.end > y.end;
    });
    return order;
}

std::string nameOf(const TraceLane& lane)
{
    return lane.processName.empty() ? lane.name : lane.processName + ": " + lane.name;
}

} // namespace

void clipToNextStart(TraceData& data)
{
    constexpr Nanoseconds clockTick = 1000; // profilers round starts and durations, some of them to microseconds
    const auto ofGraph = [&](const Activity& a) { return data.details[a.detail].graphNode != 0; };
    std::int64_t clipped = 0, rounded = 0;
    Nanoseconds removed = 0, most = 0;
    std::string example;
    const auto clip = [&](Activity& activity, Nanoseconds end) {
        const Nanoseconds beyond = activity.end - end;
        if (beyond <= 0)
            return;
        activity.end = end;
        if (beyond <= clockTick) {
            ++rounded;
            return;
        }
        ++clipped;
        removed += beyond;
        if (beyond > most) {
            most = beyond;
            example = data.strings.text(activity.name) + " on " + nameOf(data.lanes[activity.lane]);
        }
    };
    std::vector<Activity*> running; // one, or several of a graph
    // What has no length, because its duration is missing, says nothing about the end of others.
    for (const std::uint32_t i : inOrder(data, [&](const Activity& a) {
             return runsOnDevice(a.kind()) && a.end > a.start && data.lanes[a.lane].kind == TraceLane::Kind::Stream;
         })) {
        Activity& next = data.activities[i];
        if (!running.empty() && running.back()->lane != next.lane)
            running.clear();
        if (!running.empty() && !(ofGraph(*running.back()) && ofGraph(next))) {
            for (Activity* activity : running)
                clip(*activity, next.start);
            running.clear();
        }
        running.push_back(&next);
    }
    data.report.repair("kernels and copies that lasted up to a microsecond beyond the start of the next one on their "
                       "stream, as rounding leaves them; ended there",
                       "", rounded);
    if (clipped > 0)
        data.report.warn(fmt::format("{} of the kernels and copies lasted beyond the start of the next one on their "
                                     "stream; ended there, which takes {} off",
                                     clipped, formatDuration(removed)),
                         "most of it: " + example);
}

void nameUnknownLanes(TraceData& data)
{
    struct Held {
        std::int64_t slices = 0;
        Nanoseconds time = 0;
    };
    std::map<std::string, Held> lanes; // by name: ranks have the same
    Held all;
    std::uint32_t lane = 0;
    Nanoseconds until = 0; // the lane's slices so far end
    bool first = true;
    for (const std::uint32_t i : inOrder(data, [&](const Activity& a) { return data.lanes[a.lane].unknown; })) {
        const Activity& a = data.activities[i];
        if (first || a.lane != lane) {
            first = false;
            lane = a.lane;
            until = a.start;
        }
        const Nanoseconds more = std::max<Nanoseconds>(0, a.end - std::max(a.start, until));
        until = std::max(until, a.end);
        Held& held = lanes[nameOf(data.lanes[lane])];
        for (Held* of : {&held, &all}) {
            ++of->slices;
            of->time += more;
        }
    }
    if (lanes.empty())
        return;
    std::vector<std::pair<std::string, Held>> order(lanes.begin(), lanes.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
    constexpr std::size_t named = 8;
    std::string list;
    for (std::size_t l = 0; l < std::min(named, order.size()); ++l)
        list += fmt::format("{}{} ({} slices, {})", l == 0 ? "" : "; ", order[l].first, order[l].second.slices,
                            formatDuration(order[l].second.time));
    if (order.size() > named)
        list += fmt::format("; and {} more", order.size() - named);
    data.report.warn(fmt::format("lanes of no kind that is known, whose {} counts as nobody's work: {}",
                                 formatDuration(all.time), list),
                     "kernels, copies and calls are known by the categories that PyTorch's profiler writes, such as "
                     "\"kernel\"");
}

} // namespace pipewright
