// SPDX-License-Identifier: GPL-3.0-or-later
// Slices in the form a timeline paints from: per lane one track for each row of nesting, and in a track sorted
// arrays of slices that do not overlap, so that a window is found by binary search. Over every track stands an
// index of its longest slices (a tree of fan-out 16 held in one array, as in Perfetto's segment forest): what a
// pixel shows is its longest slice and how many there are, for O(pixels log slices) however many slices there are.
// 22 to 26 bytes per slice.
#pragma once

#include "traces/activity.h"

#include <span>

namespace pipewright {

class Track {
public:
    std::uint32_t lane = 0; ///< index into the trace's lanes
    int row = 0;            ///< 0 outermost

    std::vector<Nanoseconds> start, end; ///< sorted; end[i] <= start[i + 1]
    std::vector<std::uint32_t> name;
    std::vector<ActivityKind> kind;
    std::vector<std::uint32_t> record;      ///< row of the kind's table in the store
    std::vector<std::uint32_t> correlation; ///< joins launch and launched; empty when there is none in the track

    std::size_t size() const { return start.size(); }
    /// After the arrays are filled. O(slices).
    void index();
    /// The longest slice of [first, last), the earliest of several; first < last. O(log slices).
    std::size_t longest(std::size_t first, std::size_t last) const;

private:
    struct Longest {
        Nanoseconds duration = 0; ///< here, so that comparing need not look the slice up
        std::uint32_t slice = 0;
    };
    static Longest longerOf(const Longest& a, const Longest& b);
    Longest at(std::size_t level, std::size_t i) const
    {
        return level == 0 ? Longest{end[i] - start[i], static_cast<std::uint32_t>(i)} : m_levels[level - 1][i];
    }
    /// [k][i]: longest of the 16^(k + 1) slices from i * 16^(k + 1) on.
    std::vector<std::vector<Longest>> m_levels;
};

/// What one stretch of pixels shows.
struct VisibleSlice {
    std::uint32_t slice = 0; ///< the longest of those folded into it
    std::uint32_t count = 1;
    Nanoseconds start = 0, end = 0; ///< from the first one's start to the last one's end
    bool operator==(const VisibleSlice&) const = default;
};

/// The slices that a view of `pixels` columns over [from, to) shows, in order: those that reach beyond their pixel
/// each for itself, the others folded per pixel. At most two entries per pixel; appended to `visible`.
void findVisible(const Track& track, Nanoseconds from, Nanoseconds to, int pixels, std::vector<VisibleSlice>& visible);

/// Lays the activities out in tracks, by lane and row. A slice that overlaps another without lying in it goes to
/// the next free row and is counted as repaired in the report. Moves no activity; O(activities) when they come in order per lane, else O(n log n).
struct TrackLayout {
    struct Row {
        std::uint32_t lane = 0;
        int row = 0;
        std::vector<std::uint32_t> activities;
    };
    std::vector<Row> rows; ///< by lane, then row
};
TrackLayout layOut(TraceData& data);

} // namespace pipewright
