// SPDX-License-Identifier: GPL-3.0-or-later
// Estimates offsets per pair of ranks by medians of matched events, then joins ranks along a minimum spanning tree of
// the residuals. O(events log events + ranks²).
#include "traces/import/clockalignment.h"

#include "core/base/median.h"
#include "traces/import/chromelanes.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace pipewright {

namespace {

Nanoseconds spreadOf(const std::vector<Nanoseconds>& values, Nanoseconds median)
{
    std::vector<Nanoseconds> distances;
    for (const Nanoseconds value : values)
        distances.push_back(std::abs(value - median));
    return medianOf(std::move(distances));
}

/// End times of a rank's events that it shares with other ranks, in order.
struct Together {
    std::map<int, std::vector<Nanoseconds>> sent, received;                              ///< by peer
    std::map<std::pair<std::string, std::string>, std::vector<Nanoseconds>> collectives; ///< by kind and group
};

Together togetherOf(const TraceData& trace)
{
    Together together;
    for (const Activity& activity : trace.activities) {
        const ActivityDetail& detail = trace.details[activity.detail];
        if (detail.collective == 0 || activity.kind() != ActivityKind::Kernel)
            continue;
        const std::string& what = trace.strings.text(detail.collective);
        if (what == "send" || what == "recv") {
            if (detail.peer >= 0)
                (what == "send" ? together.sent : together.received)[detail.peer].push_back(activity.end);
        } else {
            const std::string group = trace.strings.text(detail.group) + "/" + std::to_string(detail.communicator);
            together.collectives[{what, group}].push_back(activity.end);
        }
    }
    const auto sort = [](auto& map) {
        for (auto& [key, times] : map)
            std::sort(times.begin(), times.end());
    };
    sort(together.sent);
    sort(together.received);
    sort(together.collectives);
    return together;
}

struct Offset {
    Nanoseconds value = 0; ///< the second rank's clock minus the first's
    Nanoseconds residual = 0;
    std::int64_t events = 0;
    const char* method = "";
};

/// Differences between two clocks from matched events. Series of different lengths are skipped, since a recording may
/// begin or end within one.
void addDifferences(const std::vector<Nanoseconds>& first, const std::vector<Nanoseconds>& second,
                    std::vector<Nanoseconds>& to)
{
    if (first.size() == second.size())
        for (std::size_t i = 0; i < first.size(); ++i)
            to.push_back(second[i] - first[i]);
}

std::optional<Offset> offsetBetween(const Together& a, int rankA, const Together& b, int rankB)
{
    std::vector<Nanoseconds> there, back;
    const auto series = [](const std::map<int, std::vector<Nanoseconds>>& map,
                           int peer) -> const std::vector<Nanoseconds>& {
        static const std::vector<Nanoseconds> empty;
        const auto found = map.find(peer);
        return found == map.end() ? empty : found->second;
    };
    addDifferences(series(a.sent, rankB), series(b.received, rankA), there);
    addDifferences(series(a.received, rankB), series(b.sent, rankA), back);
    const auto events = static_cast<std::int64_t>(there.size() + back.size());
    if (!there.empty() && !back.empty()) {
        const Nanoseconds one = medianOf(there), other = medianOf(back); // latency + offset, offset - latency
        return Offset{(one + other) / 2, std::max(spreadOf(there, one), spreadOf(back, other)), events, "ping-pong"};
    }
    std::vector<Nanoseconds> shared;
    for (const auto& [key, ends] : a.collectives)
        if (const auto found = b.collectives.find(key); found != b.collectives.end())
            addDifferences(ends, found->second, shared);
    const char* method = "shared collectives";
    if (shared.empty()) {
        shared = there.empty() ? back : there;
        method = "one-way transfers";
    }
    if (shared.empty())
        return std::nullopt;
    const Nanoseconds median = medianOf(shared);
    return Offset{median, spreadOf(shared, median), static_cast<std::int64_t>(shared.size()), method};
}

void shift(TraceData& trace, Nanoseconds by)
{
    for (Activity& activity : trace.activities) {
        activity.start += by;
        activity.end += by;
    }
    for (TraceCounter& counter : trace.counters)
        for (Nanoseconds& time : counter.time)
            time += by;
    for (TraceFlow& flow : trace.flows) {
        flow.from += by;
        flow.to += by;
    }
}

/// Warns when the times of several ranks cannot be compared, or the files seem to be from different runs.
void warnOfClocks(std::vector<TraceData>& traces)
{
    using Span = std::pair<Nanoseconds, Nanoseconds>;
    std::vector<std::optional<Span>> spans;
    for (const TraceData& trace : traces) {
        std::optional<Span>& span = spans.emplace_back();
        for (const Activity& a : trace.activities)
            span = span ? Span(std::min(span->first, a.start), std::max(span->second, a.end)) : Span(a.start, a.end);
    }
    for (std::size_t i = 0; i < traces.size(); ++i) {
        const std::string which = "rank " + std::to_string(traces[i].rank) + ", " + traces[i].source;
        if (traces[i].clocks.front().method == "none")
            traces[i].report.warn("no clock, message or collective is shared with the other files: times of " + which
                                      + " mean nothing beside theirs",
                                  "record all ranks with one tool");
        const auto meets = [&](std::size_t other) {
            return other != i && spans[other] && spans[i]->first < spans[other]->second
                   && spans[other]->first < spans[i]->second;
        };
        bool alone = spans[i].has_value();
        for (std::size_t other = 0; other < traces.size() && alone; ++other)
            alone = !meets(other);
        if (alone && traces.size() > 1)
            traces[i].report.warn("by its clock nothing else ran while this was recorded: " + which,
                                  "are the files of one run?");
    }
}

/// Shifts traces with a wall clock to that of the first trace. Returns which were shifted.
std::vector<bool> toWallClock(std::vector<TraceData>& traces, std::vector<Nanoseconds>& shifted)
{
    std::vector<bool> known(traces.size(), false);
    const std::int64_t base = traces[0].originEpochNs;
    for (std::size_t i = 0; i < traces.size(); ++i) {
        known[i] = base != 0 && traces[i].originEpochNs != 0;
        if (!known[i])
            continue;
        shifted[i] = traces[i].originEpochNs - base;
        shift(traces[i], shifted[i]);
        traces[i].originEpochNs = base;
    }
    return known;
}

} // namespace

void alignClocks(std::vector<TraceData>& traces)
{
    if (traces.empty())
        return;
    std::sort(traces.begin(), traces.end(), [](const TraceData& a, const TraceData& b) { return a.rank < b.rank; });
    std::vector<Nanoseconds> wall(traces.size(), 0);
    const std::vector<bool> onWallClock = toWallClock(traces, wall);
    std::vector<Together> together;
    for (const TraceData& trace : traces)
        together.push_back(togetherOf(trace));

    // Prim's algorithm from the lowest rank, by smallest residual.
    struct Edge {
        std::size_t from = 0, to = 0;
        Offset offset;
    };
    std::vector<Edge> edges;
    for (std::size_t a = 0; a < traces.size(); ++a)
        for (std::size_t b = a + 1; b < traces.size(); ++b)
            if (const auto offset = offsetBetween(together[a], traces[a].rank, together[b], traces[b].rank)) {
                edges.push_back({a, b, *offset});
                Offset reverse = *offset;
                reverse.value = -reverse.value;
                edges.push_back({b, a, reverse});
            }
    std::stable_sort(edges.begin(), edges.end(),
                     [](const Edge& a, const Edge& b) { return a.offset.residual < b.offset.residual; });
    std::vector<bool> done(traces.size(), false);
    std::vector<Nanoseconds> offsets(traces.size(), 0);
    std::vector<ClockOffset> clocks(traces.size());
    for (std::size_t root = 0; root < traces.size(); ++root) {
        if (done[root])
            continue;
        done[root] = true;
        clocks[root] = {traces[root].rank, wall[root], 0, 0,
                        root == 0           ? "reference"
                        : onWallClock[root] ? "wall clock"
                                            : "none"};
        for (bool grown = true; grown;) {
            grown = false;
            for (const Edge& edge : edges)
                if (done[edge.from] && !done[edge.to]) {
                    offsets[edge.to] = offsets[edge.from] + edge.offset.value;
                    clocks[edge.to] = {traces[edge.to].rank, wall[edge.to] - offsets[edge.to], edge.offset.residual,
                                       edge.offset.events, edge.offset.method};
                    done[edge.to] = grown = true;
                    break;
                }
        }
    }
    for (std::size_t i = 0; i < traces.size(); ++i) {
        shift(traces[i], -offsets[i]);
        traces[i].clocks = {clocks[i]};
    }
    warnOfClocks(traces);
}

TraceData merged(std::vector<TraceData> traces)
{
    TraceData all;
    all.ranks = static_cast<int>(traces.size());
    for (TraceData& trace : traces) {
        if (all.lanes.empty()) {
            all.tool = trace.tool;
            all.originEpochNs = trace.originEpochNs;
        }
        all.source += (all.source.empty() ? "" : ", ") + trace.source;
        all.ranks = std::max(all.ranks, trace.ranks);
        std::vector<std::uint32_t> names;
        for (std::size_t i = 0; i < trace.strings.size(); ++i)
            names.push_back(all.strings.id(trace.strings.text(static_cast<std::uint32_t>(i))));
        const auto firstLane = static_cast<std::uint32_t>(all.lanes.size());
        const auto firstDetail = static_cast<std::uint32_t>(all.details.size() - 1);
        for (Activity activity : trace.activities) {
            activity.name = names[activity.name];
            activity.lane = (activity.lane + firstLane) & 0xffffff;
            activity.detail = activity.detail == 0 ? 0 : activity.detail + firstDetail;
            all.activities.push_back(activity);
        }
        for (std::size_t i = 1; i < trace.details.size(); ++i) {
            ActivityDetail detail = trace.details[i];
            detail.collective = names[detail.collective];
            detail.group = names[detail.group];
            all.details.push_back(detail);
        }
        for (TraceFlow flow : trace.flows) {
            flow.fromLane += firstLane;
            flow.toLane += firstLane;
            all.flows.push_back(flow);
        }
        std::move(trace.lanes.begin(), trace.lanes.end(), std::back_inserter(all.lanes));
        std::move(trace.counters.begin(), trace.counters.end(), std::back_inserter(all.counters));
        all.clocks.insert(all.clocks.end(), trace.clocks.begin(), trace.clocks.end());
        all.report.add(trace.report);
        trace = TraceData();
    }
    const Nanoseconds first = moveToZero(all);
    all.originEpochNs += all.originEpochNs != 0 ? first : 0;
    return all;
}

} // namespace pipewright
