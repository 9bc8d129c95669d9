// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the events: each phase updates lanes, slices, flows and counters (chromelanes.h). O(bytes + events log
// events).
#include "traces/import/chromejson.h"

#include "traces/import/chromebatches.h"
#include "traces/import/chromelanes.h"
#include "traces/store/chromecategory.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace pipewright {

namespace {

template<typename Number>
std::optional<Number> numberOf(std::string_view text)
{
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return number;
}

int bytesOfType(std::string_view type)
{
    for (const auto& [name, bytes] : std::initializer_list<std::pair<std::string_view, int>>{{"Float", 4},
                                                                                             {"BFloat16", 2},
                                                                                             {"Half", 2},
                                                                                             {"Double", 8},
                                                                                             {"Long", 8},
                                                                                             {"Int", 4},
                                                                                             {"Byte", 1},
                                                                                             {"Char", 1},
                                                                                             {"Bool", 1}})
        if (type == name)
            return bytes;
    return 0;
}

int copyKindOf(std::string_view name)
{
    for (const auto& [text, kind] :
         std::initializer_list<std::pair<std::string_view, int>>{{"HtoD", 1},
                                                                 {"DtoH", 2},
                                                                 {"DtoD", 8},
                                                                 {"HtoH", 9},
                                                                 {"PtoP", 10},
                                                                 {"host to device", 1}, // as Nsight names them
                                                                 {"device to host", 2},
                                                                 {"device to device", 8},
                                                                 {"host to host", 9},
                                                                 {"peer to peer", 10}})
        if (name.find(text) != std::string_view::npos)
            return kind;
    return 0;
}

class ChromeImporter {
public:
    ChromeImporter(ByteSource& source, const std::string& where) : m_source(source), m_where(where), m_lanes(m_data) {}

    TraceData run(const WorkProgress& progress)
    {
        m_data.tool = "Chrome JSON";
        m_data.source = where();
        ChromeBatches batches(m_source, m_where);
        while (const ChromeBatches::Batch* batch = batches.next()) {
            progress.at(batch->fraction, m_where);
            for (const ChromeBatches::Numbered& each : batch->events) {
                m_number = each.number;
                if (!each.readable) {
                    lose("events that are no JSON");
                    continue;
                }
                if (each.event.repaired)
                    m_data.report.repair("events with characters that JSON does not allow", example());
                take(each.event);
            }
            for (const ChromeBatches::Member& member : batch->members)
                readMember(member.key, member.text);
        }
        m_data.report.add(batches.report());
        if (const std::string complaint = m_source.complaint(); !complaint.empty())
            m_data.report.repair(complaint, example());
        finish();
        return std::move(m_data);
    }

private:
    std::string where() const { return m_where; }
    std::string example() const { return "event " + std::to_string(m_number); }
    void lose(const char* reason) { m_data.report.lose(reason, example()); }

    void readMember(const std::string& key, std::string_view text)
    {
        if (key == "baseTimeNanoseconds") {
            m_base = numberOf<std::int64_t>(text.substr(0, text.find_first_not_of("0123456789")));
        } else if (key == "distributedInfo") {
            simdjson::dom::parser parser;
            simdjson::dom::object info;
            if (parser.parse(text.data(), text.size()).get(info)) // copied: the text has no room behind it
                return;
            const auto number = [&](const char* name) -> std::optional<int> {
                std::int64_t value = 0;
                const bool fits = !info[name].get(value) && value >= 0 && value <= 1'000'000;
                return fits ? std::optional(static_cast<int>(value)) : std::nullopt;
            };
            if (const auto rank = number("rank")) {
                m_data.rank = *rank;
                m_data.rankKnown = true;
            }
            m_data.ranks = std::max(1, number("world_size").value_or(1));
            m_data.tool = "PyTorch Kineto";
        } else if (key == "deviceProperties" || key == "schemaVersion") {
            m_data.tool = "PyTorch Kineto";
        }
    }

    void take(const ChromeEvent& event)
    {
        if (event.phase.size() != 1) {
            lose("events without a phase");
            return;
        }
        const char phase = event.phase[0];
        if (phase == 'M') {
            m_lanes.describe(event);
            return;
        }
        const auto time = parseMicroseconds(event.time);
        if (!time) {
            lose(event.time.empty() ? "events without a time" : "times that are no number");
            return;
        }
        switch (phase) {
        case 'X': complete(event, *time); break;
        case 'B': m_lanes.begin(event, add(event, *time, *time)); break;
        case 'E':
            if (!m_lanes.end(event, *time))
                lose("ends without their beginning");
            break;
        case 'b': m_lanes.beginAsync(event, add(event, *time, *time, true)); break;
        case 'e':
            if (!m_lanes.endAsync(event, *time))
                lose("ends without their beginning");
            break;
        case 'i':
        case 'I':
        case 'R':
        case 'n':
            if (event.name == "[memory]" && !event.totalAllocated.empty())
                m_lanes.countMemory(event, *time);
            else
                setKind(add(event, *time, *time, phase == 'n'), ActivityKind::Mark);
            break;
        case 'C':
            for (const auto& [name, value] : event.values)
                m_lanes.count(event, name, *time, value);
            if (event.values.empty())
                lose("counters without a number");
            break;
        case 's':
        case 't':
        case 'f': m_lanes.flow(event, *time); break;
        default: lose("phases other than X, B, E, b, n, e, i, I, R, C, s, t, f and M");
        }
    }

    void complete(const ChromeEvent& event, Nanoseconds time)
    {
        if (event.duration.empty()) {
            if (runsOnDevice(kindOfCategory(event.category)))
                m_data.report.lose("durations of kernels and copies, which the trace does not state; they count as "
                                   "empty",
                                   std::string(event.name) + ", " + example());
            else
                m_data.report.repair("slices without a duration; shown as moments",
                                     std::string(event.name) + ", " + example());
        }
        const auto duration =
            event.duration.empty() ? std::optional<Nanoseconds>(0) : parseMicroseconds(event.duration);
        if (!duration || *duration < 0) {
            lose(duration ? "negative durations" : "durations that are no number");
            return;
        }
        Nanoseconds end = 0;
        if (__builtin_add_overflow(time, *duration, &end)) {
            lose("durations beyond all time");
            return;
        }
        add(event, time, end);
    }

    std::size_t add(const ChromeEvent& event, Nanoseconds start, Nanoseconds end, bool async = false)
    {
        Activity activity;
        activity.start = start;
        activity.end = end;
        activity.name = m_data.strings.id(event.name);
        ActivityKind kind = kindOfCategory(event.category);
        if (kind == ActivityKind::Other && event.name.starts_with("PP:"))
            kind = ActivityKind::Range;
        const bool onDevice = runsOnDevice(kind) || kind == ActivityKind::GpuRange;
        activity.lane = (async ? m_lanes.asyncLane(event) : m_lanes.lane(event, onDevice)) & 0xffffff;
        activity.kindNumber = static_cast<std::uint8_t>(kind);
        if (!event.correlation.empty())
            activity.correlation = numberOf<std::uint32_t>(event.correlation).value_or(0);
        if (!event.bytes.empty() || !event.collective.empty() || !event.graphNode.empty()
            || kind == ActivityKind::Memcpy)
            activity.detail = detailOf(event, kind);
        m_data.activities.push_back(activity);
        return m_data.activities.size() - 1;
    }

    void setKind(std::size_t activity, ActivityKind kind)
    {
        m_data.activities[activity].kindNumber = static_cast<std::uint8_t>(kind);
    }

    std::uint32_t detailOf(const ChromeEvent& event, ActivityKind kind)
    {
        ActivityDetail detail;
        detail.bytes = numberOf<Bytes>(event.bytes).value_or(-1);
        detail.graphNode = numberOf<std::int64_t>(event.graphNode).value_or(0);
        detail.collective = event.collective.empty() ? 0 : m_data.strings.id(event.collective);
        detail.group = event.group.empty() ? 0 : m_data.strings.id(event.group);
        detail.groupSize = numberOf<std::int32_t>(event.groupSize).value_or(0);
        if (event.collective == "send")
            detail.peer = numberOf<std::int32_t>(event.targetRank).value_or(-1);
        else if (event.collective == "recv")
            detail.peer = numberOf<std::int32_t>(event.sourceRank).value_or(-1);
        const std::int64_t elements = numberOf<std::int64_t>(event.elements).value_or(0);
        if (const int size = bytesOfType(event.type); size > 0 && elements > 0 && elements < (std::int64_t{1} << 50))
            detail.bytes = elements * size;
        if (kind == ActivityKind::Memcpy)
            detail.copyKind = copyKindOf(event.name);
        m_data.details.push_back(detail);
        return static_cast<std::uint32_t>(m_data.details.size() - 1);
    }

    void finish()
    {
        if (!m_data.rankKnown)
            if (const auto rank = rankInName(m_where)) {
                m_data.rank = *rank;
                m_data.rankKnown = true;
            }
        m_lanes.finish();
        if (m_data.activities.empty() && m_data.counters.empty())
            throw Error(m_where, "the trace holds no slice",
                        m_data.report.lost() > 0 ? std::to_string(m_data.report.lost()) + " events could not be read"
                                                 : "");
        const Nanoseconds first = moveToZero(m_data);
        constexpr Nanoseconds year2000 = 946'684'800'000'000'000;
        if (m_base && *m_base > 0 && first < year2000)
            m_data.originEpochNs = *m_base + first;
        else if (first > year2000) // such times count from the epoch already
            m_data.originEpochNs = first;
    }

    ByteSource& m_source;
    std::string m_where;
    TraceData m_data;
    ChromeLanes m_lanes;
    std::optional<std::int64_t> m_base;
    std::int64_t m_number = 0;
};

} // namespace

std::optional<Nanoseconds> parseMicroseconds(std::string_view text)
{
    constexpr Nanoseconds most = std::numeric_limits<Nanoseconds>::max() / 2;
    const bool negative = text.starts_with('-');
    std::string_view rest = text.substr(negative || text.starts_with('+') ? 1 : 0);
    if (rest.find_first_of("eE") != std::string_view::npos) {
        const auto number = numberOf<double>(rest);
        if (!number || !(std::abs(*number) < 1e15))
            return std::nullopt;
        return (negative ? -1 : 1) * std::llround(*number * 1000);
    }
    Nanoseconds value = 0;
    int decimals = -1; // digits after the decimal point
    bool digits = false, roundUp = false;
    for (const char c : rest) {
        if (c == '.' && decimals < 0) {
            decimals = 0;
        } else if (c >= '0' && c <= '9') {
            digits = true;
            if (decimals == 3)
                roundUp = c >= '5';
            if (decimals >= 3) {
                ++decimals;
                continue;
            }
            if (value > most / 10)
                return std::nullopt;
            value = value * 10 + (c - '0');
            decimals += decimals >= 0 ? 1 : 0;
        } else {
            return std::nullopt;
        }
    }
    if (!digits)
        return std::nullopt;
    for (int i = std::max(decimals, 0); i < 3; ++i) {
        if (value > most / 10)
            return std::nullopt;
        value *= 10;
    }
    value += roundUp ? 1 : 0;
    return negative ? -value : value;
}

std::optional<int> rankInName(std::string_view name)
{
    name = name.substr(name.rfind('/') + 1);
    for (std::size_t at = name.find("rank"); at != std::string_view::npos; at = name.find("rank", at + 1)) {
        std::size_t digit = at + 4;
        while (digit < name.size() && (name[digit] == '-' || name[digit] == '_'))
            ++digit;
        int rank = 0;
        if (std::from_chars(name.data() + digit, name.data() + std::min(name.size(), digit + 6), rank).ec == std::errc{}
            && rank >= 0)
            return rank;
    }
    return std::nullopt;
}

TraceData importChromeJson(ByteSource& source, const std::string& where, const WorkProgress& progress)
{
    return ChromeImporter(source, where).run(progress);
}

} // namespace pipewright
