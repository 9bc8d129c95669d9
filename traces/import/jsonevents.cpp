// SPDX-License-Identifier: GPL-3.0-or-later
// A scanner over a sliding buffer that tracks strings and bracket depth, with a table of stop characters. O(bytes).
#include "traces/import/jsonevents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace pipewright {

namespace {

constexpr std::size_t pieceSize = 1 << 20;

/// Characters at which the scanner stops outside strings.
constexpr std::array<bool, 256> makeStops()
{
    std::array<bool, 256> stops{};
    for (const char c : {'"', '{', '}', '[', ']', ','})
        stops[static_cast<unsigned char>(c)] = true;
    return stops;
}
constexpr std::array<bool, 256> stops = makeStops();

constexpr int deepest = 64; ///< brackets within each other in one event

bool isBlank(int c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/// Whether a bracket may open at `at`, within another one: as a value, or as an entry of a list.
bool mayOpen(const char* at, bool inList)
{
    do
        --at;
    while (isBlank(*at));
    return *at == ':' || *at == '[' || (inList && *at == ',');
}

} // namespace

JsonEvents::JsonEvents(ByteSource& source, ImportReport& report, std::string where)
    : m_source(source), m_report(report), m_where(std::move(where)), m_buffer(2 * pieceSize + padding)
{
}

/// Reads more; bytes not returned yet move to the buffer's front when its end is reached.
bool JsonEvents::fill()
{
    if (m_end + pieceSize + padding > m_buffer.size()) {
        std::memmove(m_buffer.data(), m_buffer.data() + m_begin, m_end - m_begin);
        m_end -= m_begin;
        m_dropped += m_begin;
        m_begin = 0;
        if (m_end + pieceSize + padding > m_buffer.size())
            m_buffer.resize(2 * m_buffer.size());
    }
    const std::size_t got = m_source.read(m_buffer.data() + m_end, pieceSize);
    m_end += got;
    return got > 0;
}

/// The byte so far behind m_begin; -1 behind the end of the file.
int JsonEvents::byteAt(std::size_t offset)
{
    while (m_begin + offset >= m_end)
        if (!fill())
            return -1;
    return static_cast<unsigned char>(m_buffer[m_begin + offset]);
}

int JsonEvents::pastBlanksAt(std::size_t& offset)
{
    int c = byteAt(offset);
    while (isBlank(c))
        c = byteAt(++offset);
    return c;
}

int JsonEvents::peek()
{
    return byteAt(0);
}

int JsonEvents::peekPastBlanks()
{
    int c = peek();
    while (isBlank(c)) {
        ++m_begin;
        c = peek();
    }
    return c;
}

/// Makes the value that begins `from` behind m_begin text(), if it is whole.
JsonEvents::Scan JsonEvents::scanValue(std::size_t from, std::size_t limit)
{
    std::size_t offset = from; // from m_begin, which moves when the buffer does
    int depth = 0;
    std::uint64_t lists = 0; // a bit for each open bracket, the lowest for the innermost: is it a list?
    bool inString = false, afterString = false;
    const auto found = [&](const char* end) {
        m_textBegin = m_begin + from;
        m_textEnd = end - m_buffer.data();
        return Scan::Whole;
    };
    for (;;) {
        const char* const begin = m_buffer.data() + m_begin;
        const char* const end = m_buffer.data() + m_end;
        const char* at = begin + offset;
        while (at < end) {
            if (inString) {
                while (at < end && *at != '"' && *at != '\\')
                    ++at;
                if (at >= end)
                    break;
                if (*at == '\\') {
                    at += 2; // may pass the end of the buffer by one; `offset` keeps it
                    continue;
                }
                inString = false;
                ++at;
                if (depth == 0)
                    return found(at);
                afterString = true;
                continue;
            }
            if (afterString) {
                while (at < end && isBlank(*at))
                    ++at;
                if (at >= end)
                    break;
                if (*at != ':' && *at != ',' && *at != '}' && *at != ']')
                    return Scan::Broken;
                afterString = false;
            }
            while (at < end && !stops[static_cast<unsigned char>(*at)])
                ++at;
            if (at >= end)
                break;
            switch (*at) {
            case '"': inString = true; break;
            case '{':
            case '[':
                if (depth == deepest || (depth > 0 && !mayOpen(at, (lists & 1) != 0)))
                    return Scan::Broken;
                lists = lists << 1 | (*at == '[' ? 1 : 0);
                ++depth;
                break;
            case ',':
                if (depth == 0) // a bare number or word ends here
                    return found(at);
                break;
            default:
                if (depth == 0)
                    return found(at);
                if (((lists & 1) != 0) != (*at == ']'))
                    return Scan::Broken;
                lists >>= 1;
                if (--depth == 0)
                    return found(at + 1);
            }
            ++at;
        }
        offset = at - begin;
        if (offset - from > limit)
            return Scan::TooLarge;
        if (!fill())
            return Scan::CutOff;
    }
}

/// Whether a whole object with a phase begins so far behind m_begin; makes it text().
bool JsonEvents::isEventAt(std::size_t offset)
{
    std::size_t first = offset + 1;
    return pastBlanksAt(first) == '"' && scanValue(offset, largestEvent) == Scan::Whole
           && text().find("\"ph\"") != std::string_view::npos;
}

/// Whether the bracket so far behind m_begin can be the one that ends the list of events.
bool JsonEvents::isEndOfListAt(std::size_t offset)
{
    int c = pastBlanksAt(++offset);
    if (c < 0 || m_bare)
        return c < 0;
    return c == '}' || (c == ',' && pastBlanksAt(++offset) == '"');
}

/// Moves m_begin behind what is broken: to the next whole event, else to the end of the list, else to the end of the
/// file.
JsonEvents::Skipped JsonEvents::skipBroken()
{
    const std::uint64_t from = m_dropped + m_begin;
    Skipped skipped;
    std::size_t offset = 0, listEnd = 0;
    int last = 0; // the last byte that is no blank
    for (int c = byteAt(offset); c >= 0; c = byteAt(++offset)) {
        if (c == '{' && offset > 0 && last != ':' && isEventAt(offset)) {
            skipped.eventFollows = true;
            break;
        }
        if (c == ']' && offset > 0 && isEndOfListAt(offset))
            listEnd = offset;
        if (c == 'p' && last == '"' && byteAt(offset + 1) == 'h' && byteAt(offset + 2) == '"')
            ++skipped.events;
        if (!isBlank(c))
            last = c;
        if (offset >= largestEvent) {
            m_begin += offset;
            offset = listEnd = 0;
        }
    }
    m_begin += skipped.eventFollows || listEnd == 0 ? offset : listEnd;
    skipped.events = std::max<std::int64_t>(1, skipped.events);
    m_firstBroken = m_broken == 0 ? from : m_firstBroken;
    m_broken += m_dropped + m_begin - from;
    return skipped;
}

JsonEvents::Found JsonEvents::next()
{
    for (;;) {
        switch (m_place) {
        case Place::Beginning: {
            if (peek() == 0xef) // a byte order mark
                for (int i = 0; i < 3 && peek() >= 0x80; ++i)
                    ++m_begin;
            const int c = peekPastBlanks();
            if (c != '{' && c != '[')
                throw Error(m_where,
                            c < 0 ? "the file is empty" : "this is no Chrome trace: it begins with neither { nor [",
                            "export the trace as JSON from the profiler (prof.export_chrome_trace in PyTorch)");
            ++m_begin;
            m_bare = c == '[';
            m_sawList = m_bare;
            m_place = m_bare ? Place::List : Place::TopLevel;
            break;
        }
        case Place::List: {
            const Found found = nextEvent();
            if (found == Found::Event || m_place == Place::End)
                return found;
            break;
        }
        case Place::TopLevel: {
            const Found found = nextMember();
            if (found == Found::Member || m_place == Place::End)
                return found;
            break;
        }
        case Place::End: return Found::End;
        }
    }
}

JsonEvents::Found JsonEvents::nextEvent()
{
    for (;;) {
        const int c = peekPastBlanks();
        if (c < 0) {
            // The format allows a bare list without its closing bracket.
            if (!m_bare)
                m_report.repair("the file ends within its list of events", "after event " + std::to_string(m_events));
            return end();
        }
        if (c == ',') {
            ++m_begin;
            continue;
        }
        if (c == ']' && isEndOfListAt(0)) {
            ++m_begin;
            m_place = Place::TopLevel;
            return m_bare ? end() : Found::End;
        }
        if (c == ']' || c == '}') {
            m_report.repair("brackets between events, which close nothing", place());
            ++m_begin;
            continue;
        }
        ++m_events;
        const Scan scan = c == '{' ? scanValue(0, largestEvent) : Scan::Broken;
        if (scan == Scan::Whole) {
            m_begin = m_textEnd;
            return Found::Event;
        }
        lose(c == '{', scan);
    }
}

std::string JsonEvents::place() const
{
    return fmt::format("event {}, at byte {}", m_events, m_dropped + m_begin);
}

/// Skips and reports what is broken at m_begin.
void JsonEvents::lose(bool isEvent, Scan scan)
{
    const std::string where = place();
    const Skipped skipped = skipBroken();
    m_events += skipped.events - 1;
    m_report.lose(!isEvent                                        ? "list members that are no events"
                  : scan == Scan::TooLarge                        ? "events of more than a megabyte"
                  : scan == Scan::CutOff && !skipped.eventFollows ? "events that the end of the file cuts"
                                                                  : "events that are no JSON",
                  where, skipped.events);
}

JsonEvents::Found JsonEvents::end()
{
    m_place = Place::End;
    const auto size = static_cast<double>(m_dropped + m_end);
    if (m_broken > largestEvent && static_cast<double>(m_broken) > mostBroken * size)
        throw Error(m_where,
                    fmt::format("{:.1f} % of the file is no JSON, from byte {} on",
                                100 * static_cast<double>(m_broken) / size, m_firstBroken),
                    "copy or export the trace once more");
    return Found::End;
}

JsonEvents::Found JsonEvents::nextMember()
{
    int c = peekPastBlanks();
    while (c == ',') {
        ++m_begin;
        c = peekPastBlanks();
    }
    const auto cut = [&](const char* what) {
        if (!m_sawList)
            throw Error(m_where, std::string("this is no Chrome trace: ") + what,
                        "export the trace as JSON from the profiler (prof.export_chrome_trace in PyTorch)");
        m_report.repair("the file does not end as JSON does", what);
        return end();
    };
    if (c == '}')
        return m_sawList ? end() : cut("it has no traceEvents");
    if (c != '"' || scanValue(0, largestEvent) != Scan::Whole)
        return cut("it ends or goes astray before its traceEvents");
    m_begin = m_textEnd;
    m_key = std::string(text());
    m_key = m_key.size() >= 2 ? m_key.substr(1, m_key.size() - 2) : std::string();
    if (peekPastBlanks() != ':')
        return cut("a member without a value");
    ++m_begin;
    c = peekPastBlanks();
    if (c < 0)
        return cut("a member without a value");
    if (m_key == "traceEvents" && c == '[') {
        ++m_begin;
        m_sawList = true;
        m_place = Place::List;
        return Found::End;
    }
    switch (scanValue(0, largestMember)) {
    case Scan::Whole: m_begin = m_textEnd; return Found::Member;
    case Scan::CutOff: return cut("a member that the end of the file cuts");
    case Scan::Broken: return cut("a member that is no JSON");
    case Scan::TooLarge: break;
    }
    m_report.lose("members of more than 64 MiB beside the events", m_key);
    return cut("a member that is too large");
}

} // namespace pipewright
