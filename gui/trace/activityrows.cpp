// SPDX-License-Identifier: GPL-3.0-or-later
// Sorts lanes into groups and sums heights; a row at a height is found by binary search. O(lanes log lanes) to build,
// O(log rows) per lookup.
#include "gui/trace/activityrows.h"

#include <QObject>

#include <algorithm>
#include <map>
#include <tuple>

namespace pipewright {

namespace {

/// Streams are grouped by device, threads by process. Devices come first.
using GroupKey = std::tuple<bool, int, std::int64_t>;

GroupKey keyOf(const TraceLane& lane)
{
    const bool thread = lane.kind == TraceLane::Kind::Thread;
    return {thread, lane.rank, thread ? lane.process : lane.device};
}

QString withRank(const QString& name, int rank, int ranks)
{
    return ranks > 1 ? QObject::tr("rank %1 · %2").arg(rank).arg(name) : name;
}

QString groupName(const TraceLane& lane, const StoredActivities& trace)
{
    if (lane.kind == TraceLane::Kind::Stream && lane.device >= 0 && lane.device < std::ssize(trace.deviceNames))
        return QString::fromStdString(trace.deviceNames[lane.device]);
    const QString name = lane.kind == TraceLane::Kind::Stream ? QObject::tr("GPU %1").arg(lane.device)
                         : lane.processName.empty()           ? QObject::tr("process %1").arg(lane.process)
                                                              : QString::fromStdString(lane.processName);
    return withRank(name, lane.rank, trace.ranks);
}

} // namespace

ActivityRows::ActivityRows(const StoredActivities& trace)
{
    struct Group {
        QString name;
        std::vector<Row> rows;
        std::vector<std::pair<std::int64_t, std::int64_t>> sort; ///< by the trace's order, then by number
    };
    std::map<GroupKey, Group> groups;
    for (std::size_t first = 0; first < trace.tracks.size();) {
        std::size_t last = first;
        while (last < trace.tracks.size() && trace.tracks[last].lane == trace.tracks[first].lane)
            ++last;
        const TraceLane& lane = trace.lanes[trace.tracks[first].lane];
        Group& group = groups[keyOf(lane)];
        group.name = groupName(lane, trace);
        Row row;
        row.kind = Kind::Lane;
        row.name = QString::fromStdString(lane.name);
        row.firstTrack = first;
        row.tracks = last - first;
        const std::pair place(lane.sortIndex, lane.thread);
        const auto at = std::upper_bound(group.sort.begin(), group.sort.end(), place) - group.sort.begin();
        group.rows.insert(group.rows.begin() + at, row);
        group.sort.insert(group.sort.begin() + at, place);
        first = last;
    }
    for (std::size_t c = 0; c < trace.counters.size(); ++c) {
        const TraceCounter& counter = trace.counters[c];
        Group& group = groups[{counter.device < 0, counter.rank, counter.device}];
        if (group.name.isEmpty())
            group.name =
                withRank(counter.device < 0 ? QObject::tr("counters") : QObject::tr("GPU %1").arg(counter.device),
                         counter.rank, trace.ranks);
        Row row;
        row.kind = Kind::Counter;
        row.name = QString::fromStdString(counter.name);
        row.counter = c;
        group.rows.push_back(row);
        group.sort.emplace_back(std::numeric_limits<std::int64_t>::max(), 0);
    }
    for (auto& [key, group] : groups) {
        const std::size_t heading = m_rows.size();
        m_rows.push_back({Kind::Group, group.name, heading});
        for (Row& row : group.rows) {
            row.group = heading;
            m_rows.push_back(std::move(row));
        }
    }
    place();
}

void ActivityRows::place()
{
    int top = 0;
    bool open = true;
    for (Row& row : m_rows) {
        if (row.kind == Kind::Group)
            open = !row.folded;
        row.visible = row.kind == Kind::Group || open;
        row.top = top;
        const int tracks = row.folded ? 1 : static_cast<int>(row.tracks);
        row.height = !row.visible                ? 0
                     : row.kind == Kind::Group   ? groupHeight
                     : row.kind == Kind::Counter ? counterHeight
                                                 : tracks * trackHeight + 2 * laneMargin;
        top += row.height;
    }
    m_height = top;
}

void ActivityRows::toggle(std::size_t row)
{
    if (m_rows[row].kind == Kind::Counter)
        return;
    m_rows[row].folded = !m_rows[row].folded;
    place();
}

std::optional<std::size_t> ActivityRows::at(int y) const
{
    if (y < 0 || y >= m_height)
        return std::nullopt;
    // Hidden rows have no height, so the last row that begins at or above y is wanted.
    const auto next =
        std::upper_bound(m_rows.begin(), m_rows.end(), y, [](int height, const Row& row) { return height < row.top; });
    auto row = static_cast<std::size_t>(next - m_rows.begin()) - 1;
    while (row > 0 && m_rows[row].height == 0)
        --row;
    return row;
}

std::optional<std::size_t> ActivityRows::trackAt(int y) const
{
    const auto row = at(y);
    if (!row || m_rows[*row].kind != Kind::Lane)
        return std::nullopt;
    const int inside = y - m_rows[*row].top - laneMargin;
    const std::size_t track = std::max(0, inside) / trackHeight;
    const std::size_t shown = m_rows[*row].folded ? 1 : m_rows[*row].tracks;
    if (inside < 0 || track >= shown)
        return std::nullopt;
    return m_rows[*row].firstTrack + track;
}

std::optional<std::size_t> ActivityRows::rowOf(std::size_t track) const
{
    for (std::size_t i = 0; i < m_rows.size(); ++i)
        if (m_rows[i].kind == Kind::Lane && track >= m_rows[i].firstTrack
            && track < m_rows[i].firstTrack + m_rows[i].tracks)
            return i;
    return std::nullopt;
}

std::optional<int> ActivityRows::topOf(std::size_t track) const
{
    const auto row = rowOf(track);
    if (!row || !m_rows[*row].visible || (m_rows[*row].folded && track != m_rows[*row].firstTrack))
        return std::nullopt;
    return m_rows[*row].top + laneMargin + static_cast<int>(track - m_rows[*row].firstTrack) * trackHeight;
}

} // namespace pipewright
