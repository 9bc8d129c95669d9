// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/export/activityexport.h"

#include "core/base/formattedtext.h"
#include "core/exchange/perfettopackets.h"
#include "core/json/jsontext.h"
#include "traces/store/chromecategory.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace pipewright {

namespace {

/// A process, which viewers draw as a group of tracks.
struct Process {
    std::string name;
    std::uint64_t number = 0; ///< from 1
};

struct Place {
    std::size_t track = 0, slice = 0;
};

/// The parts of the trace that both writers need.
class Layout {
public:
    Layout(const StoredActivities& trace, const TraceStep& stretch) : m_trace(trace), m_stretch(stretch)
    {
        for (const TraceLane& lane : trace.lanes)
            processOfLane.push_back(process(lane.rank, lane.kind == TraceLane::Kind::Stream ? lane.device : -1,
                                            lane.kind == TraceLane::Kind::Stream ? 0 : lane.process, lane.processName));
        for (const TraceCounter& counter : trace.counters)
            processOfCounter.push_back(process(counter.rank, counter.device, 0, counter.device < 0 ? "host" : ""));
        std::size_t track = 0;
        for (std::size_t lane = 0; lane < trace.lanes.size(); ++lane) {
            m_firstTrack.push_back(track);
            while (track < trace.tracks.size() && trace.tracks[track].lane == lane)
                ++track;
        }
        m_firstTrack.push_back(track);
        for (std::size_t t = 0; t < trace.tracks.size(); ++t)
            m_inRowAbove.push_back(t > 0 && liesInRowAbove(t));
        for (const TraceFlow& flow : trace.flows) {
            const auto from = sliceAt(flow.fromLane, flow.from), there = sliceAt(flow.toLane, flow.to);
            if (from && there && shown(*from) && shown(*there))
                arrows.emplace_back(*from, *there);
        }
    }

    bool shown(const Place& place) const
    {
        const Track& track = m_trace.tracks[place.track];
        return track.end[place.slice] >= m_stretch.start && track.start[place.slice] <= m_stretch.end;
    }
    bool shown(Nanoseconds time) const { return time >= m_stretch.start && time <= m_stretch.end; }
    /// A time relative to the stretch; slices that reach beyond the stretch are clipped.
    Nanoseconds inFile(Nanoseconds time) const
    {
        return std::clamp(time, m_stretch.start, m_stretch.end) - m_stretch.start;
    }

    /// Calls visit(place) for each slice of the track in the stretch.
    template<class Visit>
    void forEachSlice(std::size_t track, Visit visit) const
    {
        const std::vector<Nanoseconds>& ends = m_trace.tracks[track].end; // sorted, as the slices are disjoint
        std::size_t slice = std::lower_bound(ends.begin(), ends.end(), m_stretch.start) - ends.begin();
        for (; slice < ends.size() && shown(Place{track, slice}); ++slice)
            visit(Place{track, slice});
    }

    /// "stream 7", and "stream 7 2" for its second row.
    std::string nameOfTrack(const Track& track) const
    {
        const std::string& name = m_trace.lanes[track.lane].name;
        return track.row == 0 ? name : fmt::format("{} {}", name, track.row + 1);
    }

    /// The thread of a track in its process: one for all rows of a lane whose slices lie in each other.
    std::size_t threadOf(std::size_t track) const
    {
        while (m_inRowAbove[track])
            --track;
        return track + 1;
    }

    std::map<std::tuple<int, int, std::int64_t>, Process> processes; ///< by rank, GPU or -1, process of the host
    std::vector<std::uint64_t> processOfLane, processOfCounter;
    std::vector<std::pair<Place, Place>> arrows;

private:
    std::uint64_t process(int rank, int device, std::int64_t host, const std::string& name)
    {
        Process& found = processes[{rank, device, host}];
        if (found.number == 0) {
            found.number = processes.size();
            found.name = fmt::format("rank {}, {}", rank,
                                     device >= 0 ? fmt::format("GPU {}", device)
                                     : host != 0 ? fmt::format("{} {}", name.empty() ? "process" : name, host)
                                                 : name);
        }
        return found.number;
    }

    /// The innermost slice of the lane at that time.
    std::optional<Place> sliceAt(std::uint32_t lane, Nanoseconds time) const
    {
        std::optional<Place> found;
        for (std::size_t t = m_firstTrack[lane]; t < m_firstTrack[lane + 1]; ++t) {
            const Track& track = m_trace.tracks[t];
            const auto after = std::upper_bound(track.start.begin(), track.start.end(), time);
            if (after == track.start.begin())
                continue;
            const auto slice = static_cast<std::size_t>(after - track.start.begin()) - 1;
            if (track.end[slice] >= time)
                found = Place{t, slice};
        }
        return found;
    }

    /// Whether the track before is the row above it, and each of its slices lies in one of that.
    bool liesInRowAbove(std::size_t t) const
    {
        const Track &track = m_trace.tracks[t], &above = m_trace.tracks[t - 1];
        if (above.lane != track.lane || above.row + 1 != track.row)
            return false;
        std::size_t next = 0; // the first above that begins later
        for (std::size_t i = 0; i < track.size(); ++i) {
            while (next < above.size() && above.start[next] <= track.start[i])
                ++next;
            if (next == 0 || above.end[next - 1] < track.end[i])
                return false;
        }
        return true;
    }

    const StoredActivities& m_trace;
    TraceStep m_stretch;
    std::vector<std::size_t> m_firstTrack; ///< index of the lane's first track; one more at the end
    std::vector<bool> m_inRowAbove;        ///< by track
};

bool isOfBytes(const TraceCounter& counter)
{
    return counter.name.find("emory") != std::string::npos || counter.name.find("ytes") != std::string::npos;
}

class ChromeText {
public:
    explicit ChromeText(const Pieces& to) : m_buffer(to)
    {
        m_buffer.text = R"({"displayTimeUnit":"ns","traceEvents":[)";
    }

    static std::string quoted(std::string_view text) { return asciiJsonText(text); }
    static std::string micros(Nanoseconds time) { return fmt::format("{}.{:03}", time / 1000, time % 1000); }

    template<class... Values>
    void event(fmt::format_string<Values...> text, const Values&... values)
    {
        m_buffer.handOn();
        m_buffer.text += m_first ? "\n{" : ",\n{";
        m_first = false;
        appendFormatted(m_buffer.text, text, values...);
        m_buffer.text += '}';
    }
    void finish(std::int64_t epochOfZero)
    {
        m_buffer.text += "\n]";
        if (epochOfZero > 0)
            appendFormatted(m_buffer.text, R"(,"baseTimeNanoseconds":{})", epochOfZero);
        m_buffer.text += "}\n";
        m_buffer.finish();
    }

private:
    PieceBuffer m_buffer;
    bool m_first = true;
};

} // namespace

TraceStep wholeOf(const StoredActivities& trace)
{
    TraceStep whole{trace.source, std::numeric_limits<Nanoseconds>::max(), std::numeric_limits<Nanoseconds>::min()};
    for (const Track& track : trace.tracks)
        if (track.size() > 0) {
            whole.start = std::min(whole.start, track.start.front());
            whole.end = std::max(whole.end, track.end.back());
        }
    if (whole.end < whole.start)
        whole.start = whole.end = 0;
    return whole;
}

void perfettoTrace(const StoredActivities& trace, const TraceStep& stretch, const Pieces& to)
{
    const Layout layout(trace, stretch);
    PerfettoPackets packets(to);
    const auto processId = [](std::uint64_t number) { return number << 32; };
    const auto trackId = [](std::size_t track) { return track + 1; };
    const auto counterId = [&](std::size_t counter) { return trace.tracks.size() + 1 + counter; };
    for (const auto& [key, process] : layout.processes)
        packets.process(processId(process.number), process.number, process.name);
    // Both ends of an arrow get its number.
    std::vector<std::tuple<std::size_t, std::size_t, std::uint64_t>> starts, ends;
    for (std::size_t i = 0; i < layout.arrows.size(); ++i) {
        starts.emplace_back(layout.arrows[i].first.track, layout.arrows[i].first.slice, i + 1);
        ends.emplace_back(layout.arrows[i].second.track, layout.arrows[i].second.slice, i + 1);
    }
    std::sort(starts.begin(), starts.end());
    std::sort(ends.begin(), ends.end());
    auto start = starts.begin(), end = ends.begin();
    const auto takeOf = [](auto& next, auto last, const Place& place, std::vector<std::uint64_t>& flows) {
        flows.clear();
        for (;
             next != last && std::tuple(std::get<0>(*next), std::get<1>(*next)) == std::tuple(place.track, place.slice);
             ++next)
            flows.push_back(std::get<2>(*next));
    };
    std::vector<std::uint64_t> flows, lastFlows;
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        const Track& track = trace.tracks[t];
        packets.track(trackId(t), processId(layout.processOfLane[track.lane]), layout.nameOfTrack(track), t,
                      PerfettoPackets::Counts::Nothing);
        layout.forEachSlice(t, [&](const Place& place) {
            takeOf(start, starts.end(), place, flows);
            takeOf(end, ends.end(), place, lastFlows);
            packets.slice(trackId(t), layout.inFile(track.start[place.slice]), layout.inFile(track.end[place.slice]),
                          nameOf(track.kind[place.slice]), trace.strings[track.name[place.slice]], flows, lastFlows);
        });
    }
    for (std::size_t c = 0; c < trace.counters.size(); ++c) {
        const TraceCounter& counter = trace.counters[c];
        packets.track(counterId(c), processId(layout.processOfCounter[c]), counter.name, trace.tracks.size() + c,
                      isOfBytes(counter) ? PerfettoPackets::Counts::Bytes : PerfettoPackets::Counts::Unknown);
        for (std::size_t i = 0; i < counter.time.size(); ++i)
            if (layout.shown(counter.time[i]))
                packets.value(counterId(c), layout.inFile(counter.time[i]), counter.value[i]);
    }
    packets.finish();
}

void chromeTrace(const StoredActivities& trace, const TraceStep& stretch, const Pieces& to)
{
    const Layout layout(trace, stretch);
    ChromeText text(to);
    const auto quoted = [](std::string_view name) { return ChromeText::quoted(name); };
    const auto micros = [&](Nanoseconds time) { return ChromeText::micros(layout.inFile(time)); };
    for (const auto& [key, process] : layout.processes) {
        const std::string rank = trace.ranks > 1 ? fmt::format(R"(,"rank":{})", std::get<0>(key)) : std::string();
        text.event(R"("ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}{}}})", process.number,
                   quoted(process.name), rank);
    }
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        const Track& track = trace.tracks[t];
        const TraceLane& lane = trace.lanes[track.lane];
        const std::uint64_t process = layout.processOfLane[track.lane];
        const std::size_t thread = layout.threadOf(t);
        if (thread == t + 1) {
            text.event(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", process, thread,
                       quoted(layout.nameOfTrack(track)));
            text.event(R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})", process,
                       thread, t);
        }
        const std::string device = lane.kind == TraceLane::Kind::Stream
                                       ? fmt::format(R"("device":{},"stream":{})", lane.device, lane.thread)
                                       : std::string();
        layout.forEachSlice(t, [&](const Place& place) {
            const Nanoseconds start = layout.inFile(track.start[place.slice]),
                              end = layout.inFile(track.end[place.slice]);
            const ActivityKind kind = track.kind[place.slice];
            std::string arguments = device;
            if (!track.correlation.empty() && track.correlation[place.slice] != 0)
                arguments +=
                    fmt::format(R"({}"correlation":{})", arguments.empty() ? "" : ",", track.correlation[place.slice]);
            text.event(R"("ph":"{}","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},{},"args":{{{}}})",
                       kind == ActivityKind::Mark ? "i" : "X", quoted(trace.strings[track.name[place.slice]]),
                       chromeCategory(kind), process, thread, ChromeText::micros(start),
                       kind == ActivityKind::Mark ? R"("s":"t")" : "\"dur\":" + ChromeText::micros(end - start),
                       arguments);
        });
    }
    for (std::size_t i = 0; i < layout.arrows.size(); ++i) {
        const auto& [from, there] = layout.arrows[i];
        const auto at = [&](const Place& place, std::string_view phase, std::string_view more) {
            const Track& track = trace.tracks[place.track];
            text.event(R"("ph":"{}","name":"arrow","cat":"flow","id":{},"pid":{},"tid":{},"ts":{}{})", phase, i + 1,
                       layout.processOfLane[track.lane], layout.threadOf(place.track), micros(track.start[place.slice]),
                       more);
        };
        at(from, "s", "");
        at(there, "f", R"(,"bp":"e")");
    }
    for (std::size_t c = 0; c < trace.counters.size(); ++c) {
        const TraceCounter& counter = trace.counters[c];
        for (std::size_t i = 0; i < counter.time.size(); ++i)
            if (layout.shown(counter.time[i]))
                text.event(R"("ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{{"value":{}}})", quoted(counter.name),
                           layout.processOfCounter[c], micros(counter.time[i]), counter.value[i]);
    }
    text.finish(trace.originEpochNs > 0 ? trace.originEpochNs + stretch.start : 0);
}

} // namespace pipewright
