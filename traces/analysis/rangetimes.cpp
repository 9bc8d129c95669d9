// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/rangetimes.h"

#include "traces/store/kernelgroups.h"
#include "traces/store/launchcalls.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace pipewright {

namespace {

struct Open {
    Nanoseconds start = 0, end = 0;
    std::uint32_t name = 0;
    int parent = -1; ///< the range around it
};

/// The innermost range of a rank at a moment; -1: none. Launches are made by other threads too, such as autograd's,
/// while the thread with the range waits for them.
int innermostAt(const std::vector<Open>& ranges, Nanoseconds time)
{
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), time,
                                        [](Nanoseconds t, const Open& range) { return t < range.start; });
    int at = static_cast<int>(after - ranges.begin()) - 1;
    while (at >= 0 && ranges[at].end <= time)
        at = ranges[at].parent;
    return at;
}

} // namespace

std::vector<RangeTime> rangeTimes(const StoredActivities& trace, Nanoseconds from, Nanoseconds to)
{
    std::map<int, std::vector<Open>> ofRank;
    for (const Track& track : trace.tracks) {
        const TraceLane& lane = trace.lanes[track.lane];
        for (std::size_t i = 0; lane.kind == TraceLane::Kind::Thread && i < track.size(); ++i)
            if (track.kind[i] == ActivityKind::Range && track.start[i] >= from && track.start[i] < to
                && !trace.strings[track.name[i]].starts_with("ProfilerStep#"))
                ofRank[lane.rank].push_back({track.start[i], track.end[i], track.name[i]});
    }
    std::map<std::uint32_t, RangeTime> times;
    for (auto& [rank, ranges] : ofRank) {
        std::sort(ranges.begin(), ranges.end(),
                  [](const Open& a, const Open& b) { return std::tie(a.start, b.end) < std::tie(b.start, a.end); });
        int around = -1;
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            while (around >= 0 && ranges[around].end <= ranges[i].start)
                around = ranges[around].parent;
            ranges[i].parent = around;
            around = static_cast<int>(i);
            RangeTime& time = times[ranges[i].name];
            ++time.count;
            time.host += ranges[i].end - ranges[i].start;
            if (trace.strings[ranges[i].name].starts_with("gloo:"))
                time.communication += ranges[i].end - ranges[i].start;
        }
    }
    const LaunchCalls launches(trace);
    for (const Track& track : trace.tracks) {
        const TraceLane& lane = trace.lanes[track.lane];
        const auto ranges = ofRank.find(lane.rank);
        if (lane.kind != TraceLane::Kind::Stream || ranges == ofRank.end())
            continue;
        for (std::size_t i = 0; i < track.size(); ++i) {
            const Nanoseconds call =
                track.kind[i] == ActivityKind::Kernel ? launches.of(track, i) : LaunchCalls::unknown;
            const int at = call == LaunchCalls::unknown ? -1 : innermostAt(ranges->second, call);
            if (at < 0)
                continue;
            RangeTime& time = times[ranges->second[at].name];
            const bool communicates =
                lane.communication || KernelGroups::standard().isCommunication(trace.strings[track.name[i]]);
            (communicates ? time.communication : time.computing) += track.end[i] - track.start[i];
        }
    }
    std::vector<RangeTime> sorted;
    for (auto& [name, time] : times) {
        time.name = trace.strings[name];
        sorted.push_back(std::move(time));
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const RangeTime& a, const RangeTime& b) {
        return std::tuple(a.computing + a.communication, a.host) > std::tuple(b.computing + b.communication, b.host);
    });
    return sorted;
}

} // namespace pipewright
