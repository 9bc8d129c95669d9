// SPDX-License-Identifier: GPL-3.0-or-later
// A scanner over a sliding buffer that tracks strings and bracket depth, with a table of stop characters. O(bytes).
#include "traces/import/jsonevents.h"

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

bool isBlank(int c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
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
        m_begin = 0;
        if (m_end + pieceSize + padding > m_buffer.size())
            m_buffer.resize(2 * m_buffer.size());
    }
    const std::size_t got = m_source.read(m_buffer.data() + m_end, pieceSize);
    m_end += got;
    return got > 0;
}

int JsonEvents::peek()
{
    if (m_begin == m_end && !fill())
        return -1;
    return static_cast<unsigned char>(m_buffer[m_begin]);
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

/// Makes the value at m_begin text() and moves m_begin after it. False when it does not end within `limit` bytes
/// (m_tooLarge) or in the file.
bool JsonEvents::scanValue(std::size_t limit)
{
    std::size_t offset = 0; // from m_begin, which moves when the buffer does
    int depth = 0;
    bool inString = false;
    m_tooLarge = false;
    for (;;) {
        const char* const begin = m_buffer.data() + m_begin;
        const char* const end = m_buffer.data() + m_end;
        const char* at = begin + offset;
        bool done = false;
        while (at < end && !done) {
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
                done = depth == 0;
                continue;
            }
            while (at < end && !stops[static_cast<unsigned char>(*at)])
                ++at;
            if (at >= end)
                break;
            switch (*at) {
            case '"': inString = true; break;
            case '{':
            case '[': ++depth; break;
            case ',':
                if (depth == 0) { // a bare number or word ends here
                    m_textBegin = m_begin;
                    m_textEnd = at - m_buffer.data();
                    m_begin = m_textEnd;
                    return true;
                }
                break;
            default:
                if (depth == 0) {
                    m_textBegin = m_begin;
                    m_textEnd = at - m_buffer.data();
                    m_begin = m_textEnd;
                    return true;
                }
                done = --depth == 0;
            }
            ++at;
        }
        if (done) {
            m_textBegin = m_begin;
            m_textEnd = at - m_buffer.data();
            m_begin = m_textEnd;
            return true;
        }
        offset = at - begin;
        if (offset > limit) {
            m_tooLarge = true;
            return false;
        }
        if (!fill())
            return false;
    }
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
            m_place = Place::End;
            return Found::End;
        }
        if (c == ',') {
            ++m_begin;
            continue;
        }
        if (c == ']') {
            ++m_begin;
            m_place = m_bare ? Place::End : Place::TopLevel;
            return Found::End;
        }
        ++m_events;
        if (c == '{') {
            if (scanValue(largestEvent))
                return Found::Event;
            if (!m_tooLarge) {
                m_report.lose("events that the end of the file cuts", "event " + std::to_string(m_events));
                m_place = Place::End;
                return Found::End;
            }
            m_report.lose("events of more than a megabyte, or whose end is not found",
                          "event " + std::to_string(m_events));
        } else {
            m_report.lose("list members that are no events", "event " + std::to_string(m_events));
        }
        // Skip to the next possible event.
        ++m_begin;
        for (int next = peek(); next >= 0 && next != '{' && next != ']' && next != ','; next = peek())
            ++m_begin;
    }
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
        m_place = Place::End;
        return Found::End;
    };
    if (c == '}') {
        if (!m_sawList)
            return cut("it has no traceEvents");
        m_place = Place::End;
        return Found::End;
    }
    if (c != '"' || !scanValue(largestEvent))
        return cut("it ends or goes astray before its traceEvents");
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
    if (scanValue(largestMember))
        return Found::Member;
    if (!m_tooLarge)
        return cut("a member that the end of the file cuts");
    m_report.lose("members of more than 64 MiB beside the events", m_key);
    return cut("a member that is too large");
}

} // namespace pipewright
