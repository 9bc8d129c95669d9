// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/tracks.h"

#include <algorithm>

namespace pipewright {

namespace {
constexpr std::size_t fanOut = 16;
}

Track::Longest Track::longerOf(const Longest& a, const Longest& b)
{
    return b.duration > a.duration || (b.duration == a.duration && b.slice < a.slice) ? b : a;
}

void Track::index()
{
    m_levels.clear();
    for (std::size_t below = size(); below > fanOut;) {
        const std::size_t lower = m_levels.size();
        std::vector<Longest> level((below + fanOut - 1) / fanOut);
        for (std::size_t i = 0; i < level.size(); ++i) {
            Longest best = at(lower, i * fanOut);
            for (std::size_t j = i * fanOut + 1; j < std::min(below, (i + 1) * fanOut); ++j)
                best = longerOf(best, at(lower, j));
            level[i] = best;
        }
        below = level.size();
        m_levels.push_back(std::move(level));
    }
}

std::size_t Track::longest(std::size_t first, std::size_t last) const
{
    Longest best = at(0, first);
    // Climb while both ends can be trimmed to whole groups; at each level only the loose ends are looked at.
    std::size_t from = first, to = last;
    for (std::size_t level = 0;; ++level) {
        const bool top = level >= m_levels.size() || to - from <= 2 * fanOut;
        const std::size_t whole = top ? to : std::min(to, (from + fanOut - 1) / fanOut * fanOut);
        const std::size_t wholeEnd = top ? to : to / fanOut * fanOut;
        for (std::size_t i = from; i < whole; ++i)
            best = longerOf(best, at(level, i));
        for (std::size_t i = std::max(whole, wholeEnd); i < to; ++i)
            best = longerOf(best, at(level, i));
        if (top || whole >= wholeEnd)
            break;
        from = whole / fanOut;
        to = wholeEnd / fanOut;
    }
    return best.slice;
}

void findVisible(const Track& track, Nanoseconds from, Nanoseconds to, int pixels, std::vector<VisibleSlice>& visible)
{
    if (pixels <= 0 || to <= from || track.size() == 0)
        return;
    const double width = static_cast<double>(to - from) / pixels;
    const auto endOfPixel = [&](Nanoseconds time) {
        const auto pixel = static_cast<std::int64_t>(static_cast<double>(std::max(time, from) - from) / width);
        const auto end = from + static_cast<Nanoseconds>(static_cast<double>(pixel + 1) * width);
        return std::max(end, time + 1);
    };
    std::size_t i =
        static_cast<std::size_t>(std::upper_bound(track.end.begin(), track.end.end(), from) - track.end.begin());
    while (i < track.size() && track.start[i] < to) {
        const Nanoseconds limit = endOfPixel(track.start[i]);
        // Galloping: neighbours are near far more often than not.
        std::size_t step = 1, bound = i + 1;
        while (bound < track.size() && track.start[bound] < limit) {
            bound = std::min(track.size(), bound + step);
            step *= 2;
        }
        const auto begin = track.start.begin();
        const auto last = static_cast<std::size_t>(std::lower_bound(begin + static_cast<std::ptrdiff_t>(i + 1),
                                                                    begin + static_cast<std::ptrdiff_t>(bound), limit)
                                                   - begin);
        std::size_t folded = last;
        if (track.end[last - 1] > limit) // only the last of disjoint slices can reach beyond the pixel
            --folded;
        if (folded > i)
            visible.push_back({static_cast<std::uint32_t>(track.longest(i, folded)),
                               static_cast<std::uint32_t>(folded - i), track.start[i], track.end[folded - 1]});
        if (folded < last)
            visible.push_back({static_cast<std::uint32_t>(folded), 1, track.start[folded], track.end[folded]});
        i = last;
    }
}

namespace {

/// Rows of one lane while its slices are placed in order of their starts.
class Rows {
public:
    struct Place {
        std::size_t row = 0;
        bool crosses = false; ///< it overlaps a slice that it does not lie in
    };

    Place place(Nanoseconds start, Nanoseconds end)
    {
        while (!m_open.empty() && m_open.back().end <= start)
            m_open.pop_back();
        Place place;
        std::size_t above = m_open.size();
        while (above > 0 && m_open[above - 1].end < end)
            --above;
        place.crosses = above < m_open.size();
        place.row = m_open.empty() ? 0 : m_open.back().row + 1;
        while (place.row < m_free.size() && m_free[place.row] > start)
            ++place.row;
        if (place.row == m_free.size())
            m_free.push_back(end);
        m_free[place.row] = std::max(m_free[place.row], end);
        if (!place.crosses)
            m_open.push_back({end, place.row});
        return place;
    }

private:
    struct Open {
        Nanoseconds end = 0;
        std::size_t row = 0;
    };
    std::vector<Open> m_open;        ///< nested in each other
    std::vector<Nanoseconds> m_free; ///< per row: when its last slice ends
};

} // namespace

TrackLayout layOut(TraceData& data)
{
    // Counting sort by lane keeps what is in order in order.
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
