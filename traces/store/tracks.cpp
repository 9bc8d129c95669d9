// SPDX-License-Identifier: GPL-3.0-or-later
// Assigns rows with a stack of open slices and a tree of the rows' ends per lane, builds an 8-ary tree of longest
// slices per track, and answers a view from the coarsest level with two entries per pixel. O(n log n) to build,
// O(pixels) per view.
#include "traces/store/tracks.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace pipewright {

std::uint64_t Track::longerOfLong(std::uint64_t a, std::uint64_t b) const
{
    const auto duration = [&](std::uint64_t key) { return end[sliceOf(key)] - start[sliceOf(key)]; };
    return duration(a) != duration(b) ? (duration(a) > duration(b) ? a : b) : std::max(a, b);
}

void Track::index()
{
    m_levels.clear();
    for (std::size_t below = size(); below > fanOut; below = m_levels.back().size()) {
        const std::size_t lower = m_levels.size();
        std::vector<Entry> level((below + fanOut - 1) / fanOut);
        for (std::size_t i = 0; i < level.size(); ++i) {
            Entry all = entry(lower, i * fanOut);
            for (std::size_t j = i * fanOut + 1; j < std::min(below, (i + 1) * fanOut); ++j) {
                const Entry next = entry(lower, j);
                all.end = next.end;
                all.longest = longer(all.longest, next.longest);
            }
            level[i] = all;
        }
        m_levels.push_back(std::move(level));
    }
}

namespace {

/// Walks along one track and folds slices per pixel.
class Folding {
public:
    Folding(const Track& track, Nanoseconds from, Nanoseconds to, int pixels, std::vector<VisibleSlice>& visible)
        : m_track(track), m_from(from), m_to(to), m_width(static_cast<double>(to - from) / pixels), m_visible(visible)
    {
    }

    void go(std::size_t level, std::size_t first, std::size_t last, std::size_t slicesEach)
    {
        for (std::size_t i = first; i < last; ++i) {
            const Track::Entry entry = m_track.entry(level, i);
            ++m_looked;
            if (entry.end <= m_from)
                continue;
            if (entry.start >= m_to)
                return;
            const Nanoseconds limit = m_fold.count > 0 && entry.start < m_limit ? m_limit : endOfPixel(entry.start);
            const bool crosses = entry.end > limit;
            if (level > 0
                && (entry.start < m_from || entry.end > m_to
                    || (crosses && static_cast<double>(entry.end - entry.start) > m_width / 2))) {
                const std::size_t begin = i * Track::fanOut;
                go(level - 1, begin, std::min(begin + Track::fanOut, m_track.sizeOf(level - 1)),
                   slicesEach / Track::fanOut);
                continue;
            }
            if (m_fold.count > 0 && (crosses || limit != m_limit))
                flush();
            if (crosses) {
                m_visible.push_back(
                    {Track::sliceOf(entry.longest), slicesIn(i, i + 1, slicesEach), entry.start, entry.end});
                continue;
            }
            if (m_fold.count == 0) {
                m_fold.start = entry.start;
                m_longest = entry.longest;
                m_limit = limit;
            }
            // The hot loop: entries within the same pixel.
            const Nanoseconds stop = std::min(limit, m_to);
            std::uint64_t longest = m_track.longer(m_longest, entry.longest);
            std::size_t next = i + 1;
            for (; next < last && m_track.endOf(level, next) <= stop; ++next)
                longest = m_track.longer(longest, m_track.entry(level, next).longest);
            m_longest = longest;
            m_fold.count += slicesIn(i, next, slicesEach);
            m_fold.end = m_track.endOf(level, next - 1);
            m_looked += next - i - 1;
            i = next - 1;
        }
    }

    void flush()
    {
        if (m_fold.count == 0)
            return;
        m_fold.slice = Track::sliceOf(m_longest);
        m_visible.push_back(m_fold);
        m_fold.count = 0;
    }

    std::size_t looked() const { return m_looked; }

private:
    std::uint32_t slicesIn(std::size_t first, std::size_t last, std::size_t each) const
    {
        return static_cast<std::uint32_t>(std::min(last * each, m_track.size()) - first * each);
    }
    Nanoseconds endOfPixel(Nanoseconds time) const
    {
        const auto pixel = static_cast<std::int64_t>(static_cast<double>(std::max(time, m_from) - m_from) / m_width);
        const auto end = m_from + static_cast<Nanoseconds>(static_cast<double>(pixel + 1) * m_width);
        return std::max(end, time + 1);
    }

    const Track& m_track;
    Nanoseconds m_from, m_to;
    double m_width; ///< of a pixel
    std::vector<VisibleSlice>& m_visible;
    VisibleSlice m_fold{0, 0, 0, 0};
    std::uint64_t m_longest = 0; ///< in the fold
    Nanoseconds m_limit = 0;     ///< end of the fold's pixel
    std::size_t m_looked = 0;
};

} // namespace

std::size_t findVisible(const Track& track, Nanoseconds from, Nanoseconds to, int pixels,
                        std::vector<VisibleSlice>& visible)
{
    if (pixels <= 0 || to <= from || track.size() == 0)
        return 0;
    const std::size_t first = std::upper_bound(track.end.begin(), track.end.end(), from) - track.end.begin();
    const std::size_t last = std::lower_bound(track.start.begin(), track.start.end(), to) - track.start.begin();
    if (first >= last)
        return 0;
    // The coarsest level with leastEach entries per pixel, read sequentially.
    constexpr std::size_t leastEach = 2;
    std::size_t level = 0, each = 1;
    while (level + 1 < track.levels()
           && last - first >= static_cast<std::size_t>(pixels) * leastEach * each * Track::fanOut) {
        ++level;
        each *= Track::fanOut;
    }
    Folding folding(track, from, to, pixels, visible);
    folding.go(level, first / each, (last - 1) / each + 1, each);
    folding.flush();
    return folding.looked();
}

namespace {

/// When the last slice of each row ends. Finds the first free row from a given one on: a tree of minima, whose leaves
/// are the rows. O(log rows).
class RowEnds {
public:
    static constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::min();

    /// The first row from `row` on whose last slice has ended by `time`; a new one, if all are in use.
    std::size_t firstFree(std::size_t row, Nanoseconds time) const
    {
        // Up from the leaf while all to the right below the same parent are in use, then down to the first that is
        // free.
        std::size_t node = row + m_leaves;
        if (row >= m_leaves)
            return row;
        while (m_minimum[node] > time) {
            while ((node & 1) != 0) { // the last of its parent
                node >>= 1;
                if (node <= 1)
                    return m_leaves;
            }
            ++node;
        }
        while (node < m_leaves) {
            node *= 2;
            if (m_minimum[node] > time)
                ++node;
        }
        return node - m_leaves;
    }

    void occupy(std::size_t row, Nanoseconds end)
    {
        while (row >= m_leaves)
            grow();
        std::size_t node = row + m_leaves;
        m_minimum[node] = std::max(m_minimum[node], end);
        for (node >>= 1; node >= 1; node >>= 1)
            m_minimum[node] = std::min(m_minimum[2 * node], m_minimum[2 * node + 1]);
    }

private:
    void grow()
    {
        std::vector<Nanoseconds> larger(4 * m_leaves, never);
        std::copy(m_minimum.begin() + static_cast<std::ptrdiff_t>(m_leaves), m_minimum.end(),
                  larger.begin() + static_cast<std::ptrdiff_t>(2 * m_leaves));
        m_leaves *= 2;
        m_minimum = std::move(larger);
        for (std::size_t node = m_leaves - 1; node >= 1; --node)
            m_minimum[node] = std::min(m_minimum[2 * node], m_minimum[2 * node + 1]);
    }

    std::size_t m_leaves = 4;
    std::vector<Nanoseconds> m_minimum = std::vector<Nanoseconds>(8, never);
};

/// Rows of one lane while its slices are placed in order of their starts.
class Rows {
public:
    struct Place {
        std::size_t row = 0;
        bool crosses = false; ///< it partially overlaps another slice
    };

    /// O(log rows), amortised.
    Place place(Nanoseconds start, Nanoseconds end)
    {
        while (!m_open.empty() && m_open.back().end <= start)
            m_open.pop_back();
        Place place;
        // The innermost open slice is the first to end.
        place.crosses = !m_open.empty() && m_open.back().end < end;
        place.row = m_ends.firstFree(m_open.empty() ? 0 : m_open.back().row + 1, start);
        m_ends.occupy(place.row, end);
        if (!place.crosses)
            m_open.push_back({end, place.row});
        return place;
    }

private:
    struct Open {
        Nanoseconds end = 0;
        std::size_t row = 0;
    };
    std::vector<Open> m_open; ///< nested in each other
    RowEnds m_ends;
};

} // namespace

TrackLayout layOut(TraceData& data)
{
    // A counting sort by lane is stable.
    std::vector<std::size_t> begin(data.lanes.size() + 1, 0);
    for (const Activity& activity : data.activities)
        ++begin[activity.lane + 1];
    for (std::size_t lane = 0; lane < data.lanes.size(); ++lane)
        begin[lane + 1] += begin[lane];
    std::vector<std::uint32_t> order(data.activities.size());
    std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
    for (std::size_t i = 0; i < data.activities.size(); ++i)
        order[next[data.activities[i].lane]++] = static_cast<std::uint32_t>(i);

    TrackLayout layout;
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
        const Activity &x = data.activities[a], &y = data.activities[b];
        return x.start != y.start ? x.start < y.start : x.end > y.end;
    };
    for (std::size_t lane = 0; lane < data.lanes.size(); ++lane) {
        const std::span slices(order.data() + begin[lane], begin[lane + 1] - begin[lane]);
        if (!std::is_sorted(slices.begin(), slices.end(), before))
            std::stable_sort(slices.begin(), slices.end(), before);
        Rows rows;
        const std::size_t first = layout.rows.size();
        for (const std::uint32_t i : slices) {
            const Activity& activity = data.activities[i];
            const Rows::Place place = rows.place(activity.start, activity.end);
            while (layout.rows.size() <= first + place.row)
                layout.rows.push_back(
                    {static_cast<std::uint32_t>(lane), static_cast<int>(layout.rows.size() - first), {}});
            layout.rows[first + place.row].activities.push_back(i);
            if (place.crosses)
                data.report.repair("slices that overlap without one lying in the other; shown in a row of their own",
                                   data.lanes[lane].name + ", " + data.strings.text(activity.name));
        }
    }
    return layout;
}

} // namespace pipewright
