// SPDX-License-Identifier: GPL-3.0-or-later
// Slices for painting timelines: one track per lane and nesting row, each with sorted arrays of disjoint slices, so
// that a window is found by binary search. Every track has levels of detail, each with an eighth of the entries of the
// one below. A pixel shows its longest slice and the number of slices, read from the level with a few entries per
// pixel, so a view costs O(pixels). 28 or 32 bytes per slice, 3.4 of them for the levels.
#pragma once

#include "traces/store/activity.h"

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

    // An entry of level 0 is a slice, one of a further level up to eight of the level below.
    static constexpr std::size_t fanOut = 8;
    struct Entry {
        Nanoseconds start = 0, end = 0;
        std::uint64_t longest = 0; ///< key of the longest slice in it
    };
    std::size_t levels() const { return m_levels.size() + 1; }
    std::size_t sizeOf(std::size_t level) const { return level == 0 ? size() : m_levels[level - 1].size(); }
    Entry entry(std::size_t level, std::size_t i) const
    {
        return level == 0 ? Entry{start[i], end[i], keyOf(i)} : m_levels[level - 1][i];
    }
    Nanoseconds endOf(std::size_t level, std::size_t i) const
    {
        return level == 0 ? end[i] : m_levels[level - 1][i].end;
    }
    static std::uint32_t sliceOf(std::uint64_t key) { return ~static_cast<std::uint32_t>(key); }
    /// Key of the longer of two slices, of the earlier when they are equally long.
    std::uint64_t longer(std::uint64_t a, std::uint64_t b) const
    {
        return a >> 32 == cut && b >> 32 == cut ? longerOfLong(a, b) : a > b ? a : b;
    }

private:
    static constexpr std::uint64_t cut = 0xffffffff; ///< durations from 4.3 s on
    /// The duration above, the complement of the slice's number below.
    std::uint64_t keyOf(std::size_t i) const
    {
        const auto duration = static_cast<std::uint64_t>(end[i] - start[i]);
        return (duration < cut ? duration : cut) << 32 | ~static_cast<std::uint32_t>(i);
    }
    std::uint64_t longerOfLong(std::uint64_t a, std::uint64_t b) const;
    std::vector<std::vector<Entry>> m_levels; ///< from level 1 on
};

/// The content of one stretch of pixels.
struct VisibleSlice {
    std::uint32_t slice = 0; ///< the longest of those folded into it
    std::uint32_t count = 1;
    Nanoseconds start = 0, end = 0; ///< from the first one's start to the last one's end
    bool operator==(const VisibleSlice&) const = default;
};

/// The slices that a view of `pixels` columns over [from, to) shows, in order: slices wider than a pixel one by one,
/// others folded per pixel. Appends at most two entries per pixel to `visible`. In dense pixels a few neighbours below
/// half a pixel may be merged with a wider slice. Returns the number of level entries visited, fewer than 64 per pixel.
std::size_t findVisible(const Track& track, Nanoseconds from, Nanoseconds to, int pixels,
                        std::vector<VisibleSlice>& visible);

/// Assigns activities to tracks by lane and row. A slice that partially overlaps another goes to the next free row and
/// is counted as repaired. Moves no activity; O(activities) when sorted per lane, else O(n log n).
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
