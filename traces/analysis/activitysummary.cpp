// SPDX-License-Identifier: GPL-3.0-or-later
// Binary search for the stretch in every track, sums by name, and a merge of the sorted starts for the busy time.
// O(slices in the stretch × log tracks).
#include "traces/analysis/activitysummary.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

struct Window {
    std::size_t first = 0, last = 0; ///< slices of a track
};

Window windowOf(const Track& track, Nanoseconds from, Nanoseconds to)
{
    const auto first = std::upper_bound(track.end.begin(), track.end.end(), from) - track.end.begin();
    const auto last = std::lower_bound(track.start.begin(), track.start.end(), to) - track.start.begin();
    return {static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, last))};
}

/// Time covered by the slices of some tracks, each sorted: their starts are merged.
Nanoseconds covered(const std::vector<Track>& tracks, std::size_t firstTrack, std::vector<Window> windows,
                    Nanoseconds from, Nanoseconds to)
{
    Nanoseconds sum = 0, until = from;
    for (;;) {
        std::size_t next = windows.size();
        for (std::size_t t = 0; t < windows.size(); ++t)
            if (windows[t].first < windows[t].last
                && (next == windows.size()
                    || tracks[firstTrack + t].start[windows[t].first]
                           < tracks[firstTrack + next].start[windows[next].first]))
                next = t;
        if (next == windows.size())
            return sum;
        const Track& track = tracks[firstTrack + next];
        const std::size_t slice = windows[next].first++;
        const Nanoseconds start = std::max(track.start[slice], until), end = std::min(track.end[slice], to);
        if (end > start) {
            sum += end - start;
            until = end;
        }
    }
}

} // namespace

ActivitySummary summarise(const StoredActivities& trace, Nanoseconds from, Nanoseconds to,
                          const std::function<bool()>& stopped)
{
    ActivitySummary summary{from, to, {}, {}};
    std::vector<NameSummary> names(trace.strings.size());
    for (std::size_t first = 0; first < trace.tracks.size() && !(stopped && stopped());) {
        std::size_t last = first;
        std::vector<Window> windows;
        LaneSummary lane;
        lane.lane = trace.tracks[first].lane;
        lane.firstTrack = first;
        for (; last < trace.tracks.size() && trace.tracks[last].lane == lane.lane; ++last) {
            const Track& track = trace.tracks[last];
            const Window window = windows.emplace_back(windowOf(track, from, to));
            lane.slices += static_cast<std::int64_t>(window.last - window.first);
            for (std::size_t i = window.first; i < window.last; ++i) {
                if (track.name[i] >= names.size())
                    continue;
                NameSummary& name = names[track.name[i]];
                const Nanoseconds inside = std::min(to, track.end[i]) - std::max(from, track.start[i]);
                const Nanoseconds whole = track.end[i] - track.start[i];
                if (name.count++ == 0 || whole > name.longest) {
                    name.longest = whole;
                    name.longestTrack = last;
                    name.longestSlice = i;
                    name.kind = track.kind[i];
                    name.name = track.name[i];
                }
                name.total += inside;
            }
        }
        lane.busy = covered(trace.tracks, first, std::move(windows), from, to);
        lane.share = to > from ? static_cast<double>(lane.busy) / static_cast<double>(to - from) : 0;
        summary.lanes.push_back(lane);
        first = last;
    }
    std::erase_if(names, [](const NameSummary& name) { return name.count == 0; });
    std::stable_sort(names.begin(), names.end(),
                     [](const NameSummary& a, const NameSummary& b) { return a.total > b.total; });
    summary.names = std::move(names);
    return summary;
}

} // namespace pipewright
