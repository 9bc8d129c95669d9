// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the tracks with a sum per name and group, sorted at the end by time.
#include "traces/analysis/kerneltable.h"

#include "traces/store/kernelgroups.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <unordered_map>

namespace pipewright {

namespace {

void add(KernelRow& row, Nanoseconds time)
{
    row.shortest = row.count == 0 ? time : std::min(row.shortest, time);
    row.longest = std::max(row.longest, time);
    row.total += time;
    ++row.count;
}

class Counting {
public:
    Counting(const StoredActivities& trace, Nanoseconds from, Nanoseconds to) : m_trace(trace), m_from(from), m_to(to)
    {
    }

    KernelTable run()
    {
        for (const Track& track : m_trace.tracks)
            for (std::size_t i = 0; i < track.size(); ++i)
                if (runsOnDevice(track.kind[i]))
                    count(track.name[i], track.kind[i], track.start[i], track.end[i], 0);
        if (m_names.empty())
            countOperators();
        std::map<std::string, KernelRow> groups;
        for (auto& [key, row] : m_names) {
            const ActivityKind kind = key.second;
            row.name = m_trace.strings[key.first];
            row.group = KernelGroups::standard().nameOf(kind, row.name);
            KernelRow& group = groups[row.group];
            group.shortest = group.count == 0 ? row.shortest : std::min(group.shortest, row.shortest);
            group.longest = std::max(group.longest, row.longest);
            group.count += row.count;
            group.total += row.total;
            m_table.total += row.total;
            m_table.names.push_back(std::move(row));
        }
        for (auto& [name, row] : groups) {
            row.name = row.group = name;
            m_table.groups.push_back(std::move(row));
        }
        for (std::vector<KernelRow>* rows : {&m_table.names, &m_table.groups})
            std::sort(rows->begin(), rows->end(), [](const KernelRow& a, const KernelRow& b) {
                return std::tie(b.total, a.name) < std::tie(a.total, b.name);
            });
        return std::move(m_table);
    }

private:
    /// `inner`: the part of the time that other operators are counted for.
    void count(std::uint32_t name, ActivityKind kind, Nanoseconds start, Nanoseconds end, Nanoseconds inner)
    {
        if (end <= m_from || start >= m_to)
            return;
        add(m_names[{name, kind}], std::max<Nanoseconds>(0, std::min(end, m_to) - std::max(start, m_from) - inner));
    }

    /// A stack per thread: an operator's time less that of those it calls.
    void countOperators()
    {
        struct Slice {
            Nanoseconds start, end;
            std::uint32_t name;
            Nanoseconds inner;
        };
        m_table.ofHost = true;
        for (std::size_t first = 0; first < m_trace.tracks.size();) {
            const std::uint32_t lane = m_trace.tracks[first].lane;
            std::vector<Slice> slices;
            for (; first < m_trace.tracks.size() && m_trace.tracks[first].lane == lane; ++first) {
                const Track& track = m_trace.tracks[first];
                for (std::size_t i = 0; i < track.size(); ++i)
                    if (track.kind[i] == ActivityKind::Operator && track.end[i] > m_from && track.start[i] < m_to)
                        slices.push_back({track.start[i], track.end[i], track.name[i], 0});
            }
            std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
                return std::tie(a.start, b.end) < std::tie(b.start, a.end);
            });
            std::vector<Slice> open;
            const auto close = [&] {
                const Slice& done = open.back();
                count(done.name, ActivityKind::Operator, done.start, done.end, done.inner);
                open.pop_back();
            };
            for (const Slice& slice : slices) {
                while (!open.empty() && open.back().end <= slice.start)
                    close();
                if (!open.empty())
                    open.back().inner += std::min(slice.end, m_to) - std::max(slice.start, m_from);
                open.push_back(slice);
            }
            while (!open.empty())
                close();
        }
    }

    const StoredActivities& m_trace;
    const Nanoseconds m_from, m_to;
    std::map<std::pair<std::uint32_t, ActivityKind>, KernelRow> m_names;
    KernelTable m_table;
};

} // namespace

KernelTable kernelTable(const StoredActivities& trace, Nanoseconds from, Nanoseconds to)
{
    return Counting(trace, from, to).run();
}

std::vector<KernelChange> changesOf(const std::vector<KernelRow>& before, const std::vector<KernelRow>& after)
{
    std::map<std::string, KernelChange> changes;
    for (const KernelRow& row : before)
        changes[row.name].before = row;
    for (const KernelRow& row : after)
        changes[row.name].after = row;
    std::vector<KernelChange> sorted;
    for (auto& [name, change] : changes) {
        change.name = name;
        sorted.push_back(std::move(change));
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const KernelChange& a, const KernelChange& b) {
        return std::abs(a.change()) > std::abs(b.change());
    });
    return sorted;
}

} // namespace pipewright
