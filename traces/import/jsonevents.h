// SPDX-License-Identifier: GPL-3.0-or-later
// Splits a Chrome trace into its events as a stream. The input is a list of objects, bare or as "traceEvents" of an
// object whose other members are returned whole. Only quotes and brackets are scanned and events are parsed elsewhere,
// so a bad event does not affect others. About 1 GB/s.
//
// A broken event (a quote or a bracket that is missing or too many) is found where a string is followed by what cannot
// follow it, or a bracket stands where it cannot. Reading goes on at the next object that is whole and has a phase
// ("ph"), as every event has. Where more of a file is broken than could be one event, that is an Error.
#pragma once

#include "core/base/unfilled.h"
#include "traces/import/bytesource.h"
#include "traces/store/importreport.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace pipewright {

class JsonEvents {
public:
    /// Readable bytes after every returned text, as simdjson requires.
    static constexpr std::size_t padding = 64;
    static constexpr std::size_t largestEvent = 1 << 20, largestMember = 64 << 20;
    static constexpr double mostBroken = 0.01; ///< share of the file; more, and more than largestEvent, is an Error

    enum class Found {
        Event,  ///< text() is an object of the list
        Member, ///< key() and text(): a member of the top level
        End
    };

    JsonEvents(ByteSource& source, ImportReport& report, std::string where);
    /// The next event or member; text() and key() are valid until the next call. Throws Error when this is not a trace,
    /// or when more than `mostBroken` of it is broken.
    Found next();
    std::string_view text() const { return {m_buffer.data() + m_textBegin, m_textEnd - m_textBegin}; }
    const std::string& key() const { return m_key; }
    std::int64_t events() const { return m_events; }

private:
    enum class Place { Beginning, TopLevel, List, End };
    enum class Scan {
        Whole,
        CutOff,  ///< the file ends within it
        Broken,  ///< no JSON: quotes or brackets do not match
        TooLarge ///< its end is not found within the limit
    };

    bool fill();
    int peek();
    int peekPastBlanks();
    int byteAt(std::size_t offset);
    int pastBlanksAt(std::size_t& offset);
    Scan scanValue(std::size_t from, std::size_t limit);
    bool isEventAt(std::size_t offset);
    bool isEndOfListAt(std::size_t offset);
    struct Skipped {
        std::int64_t events = 0;   ///< at least one
        bool eventFollows = false; ///< false: no whole event comes behind it
    };
    Skipped skipBroken();
    std::string place() const; ///< of m_begin, for the report
    void lose(bool isEvent, Scan scan);
    Found nextEvent();
    Found nextMember();
    Found end();

    ByteSource& m_source;
    ImportReport& m_report;
    std::string m_where;
    UnfilledVector<char> m_buffer;
    std::size_t m_begin = 0, m_end = 0; ///< bytes read and not returned yet
    std::size_t m_textBegin = 0, m_textEnd = 0;
    std::string m_key;
    Place m_place = Place::Beginning;
    bool m_bare = false; ///< the file is a bare list
    bool m_sawList = false;
    std::int64_t m_events = 0;
    std::uint64_t m_dropped = 0;     ///< bytes of the file before m_buffer
    std::uint64_t m_broken = 0;      ///< bytes of broken events
    std::uint64_t m_firstBroken = 0; ///< where the first of them begins
};

} // namespace pipewright
