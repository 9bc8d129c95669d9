// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/launchqueue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipewright {

namespace {

/// The q-th percentile of sorted values; there must be at least one.
Nanoseconds hundredth(const std::vector<Nanoseconds>& sorted, std::size_t q)
{
    return sorted[(sorted.size() - 1) * q / 100];
}

/// `events`: starts of calls (+1) and of the launched work (-1).
void measureQueue(std::vector<std::pair<Nanoseconds, int>> events, LaunchQueue& queue)
{
    std::sort(events.begin(), events.end()); // at equal times -1 comes first
    std::int64_t length = 0;
    double area = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
        length += events[i].second;
        queue.longest = std::max(queue.longest, length);
        const Nanoseconds lasts = i + 1 < events.size() ? events[i + 1].first - events[i].first : 0;
        area += static_cast<double>(length) * static_cast<double>(lasts);
        if (length >= fullLaunchQueue)
            queue.full += lasts;
    }
    const Nanoseconds whole = events.back().first - events.front().first;
    queue.meanLength = whole > 0 ? area / static_cast<double>(whole) : 0;
}

} // namespace

std::vector<LaunchQueue> launchQueues(const StoredActivities& trace, const LaunchCalls& launches, Nanoseconds from,
                                      Nanoseconds to)
{
    std::vector<LaunchQueue> queues;
    for (std::size_t first = 0; first < trace.tracks.size();) {
        const std::uint32_t number = trace.tracks[first].lane;
        const TraceLane& lane = trace.lanes[number];
        std::vector<Nanoseconds> delays;
        std::vector<std::pair<Nanoseconds, int>> events;
        LaunchQueue queue{lane.rank, lane.device, lane.name};
        for (; first < trace.tracks.size() && trace.tracks[first].lane == number; ++first) {
            const Track& track = trace.tracks[first];
            if (lane.kind != TraceLane::Kind::Stream)
                continue;
            for (std::size_t i = 0; i < track.size(); ++i) {
                const bool asked = runsOnDevice(track.kind[i]) && track.start[i] >= from && track.start[i] < to;
                const auto call = asked ? launches.callOf(track, i) : LaunchCalls::Call{};
                if (call.start == LaunchCalls::unknown)
                    continue;
                delays.push_back(std::max<Nanoseconds>(0, track.start[i] - call.end));
                queue.shorterThanCall += track.end[i] - track.start[i] < call.end - call.start;
                events.emplace_back(std::min(call.start, track.start[i]), 1);
                events.emplace_back(track.start[i], -1);
            }
        }
        if (delays.empty())
            continue;
        std::sort(delays.begin(), delays.end());
        queue.launches = static_cast<std::int64_t>(delays.size());
        queue.medianDelay = hundredth(delays, 50);
        queue.highDelay = hundredth(delays, 95);
        queue.longestDelay = delays.back();
        measureQueue(std::move(events), queue);
        queues.push_back(std::move(queue));
    }
    std::stable_sort(queues.begin(), queues.end(), [](const LaunchQueue& a, const LaunchQueue& b) {
        return std::tie(a.rank, a.device) < std::tie(b.rank, b.device);
    });
    return queues;
}

} // namespace pipewright
