// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/launchcalls.h"

#include <algorithm>
#include <map>
#include <set>

namespace pipewright {

LaunchCalls::LaunchCalls(const StoredActivities& trace, const std::function<bool()>& stopped)
{
    std::map<std::pair<int, std::int64_t>, std::uint32_t> processes;
    for (const TraceLane& lane : trace.lanes)
        m_process.push_back(
            processes.emplace(std::pair(lane.rank, lane.process), static_cast<std::uint32_t>(processes.size()))
                .first->second);
    // Counted first: a growing vector would need up to three times the memory.
    std::size_t calls = 0;
    for (const Track& track : trace.tracks)
        for (std::size_t i = 0; i < track.correlation.size(); ++i)
            calls += track.kind[i] == ActivityKind::Runtime && track.correlation[i] != 0;
    m_calls.reserve(calls);
    std::map<int, std::set<std::uint32_t>> callers; // by rank
    for (const Track& track : trace.tracks) {
        if (track.correlation.empty())
            continue;
        if (stopped && stopped())
            return;
        const std::size_t before = m_calls.size();
        for (std::size_t i = 0; i < track.size(); ++i)
            if (track.kind[i] == ActivityKind::Runtime && track.correlation[i] != 0)
                m_calls.emplace_back(key(track.lane, track.correlation[i]), Call{track.start[i], track.end[i]});
        if (m_calls.size() > before)
            callers[trace.lanes[track.lane].rank].insert(m_process[track.lane]);
    }
    std::sort(m_calls.begin(), m_calls.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first, a.second.start) < std::pair(b.first, b.second.start);
    });
    // PyTorch's profiler writes the device's number as the process of a stream. If one process of the rank makes calls,
    // the calls are its own; with several it is ambiguous.
    for (std::size_t lane = 0; lane < trace.lanes.size(); ++lane)
        if (const std::set<std::uint32_t>& ofRank = callers[trace.lanes[lane].rank];
            ofRank.size() == 1 && !ofRank.contains(m_process[lane]))
            m_process[lane] = *ofRank.begin();
}

LaunchCalls::Call LaunchCalls::callOf(const Track& track, std::size_t slice) const
{
    if (track.correlation.empty() || track.correlation[slice] == 0 || track.lane >= m_process.size())
        return {};
    const std::uint64_t wanted = key(track.lane, track.correlation[slice]);
    const auto call = std::lower_bound(m_calls.begin(), m_calls.end(), wanted,
                                       [](const auto& entry, std::uint64_t value) { return entry.first < value; });
    return call != m_calls.end() && call->first == wanted ? call->second : Call{};
}

} // namespace pipewright
