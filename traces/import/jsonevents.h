// SPDX-License-Identifier: GPL-3.0-or-later
// Splits a Chrome trace into its events as a stream. The input is a list of objects, bare or as "traceEvents" of an
// object whose other members are returned whole. Only quotes and brackets are scanned and events are parsed elsewhere,
// so a bad event does not affect others. About 1 GB/s.
#pragma once

#include "core/base/unfilled.h"
#include "traces/import/bytesource.h"
#include "traces/store/importreport.h"

#include <string>
#include <string_view>

namespace pipewright {

class JsonEvents {
public:
    /// Readable bytes after every returned text, as simdjson requires.
    static constexpr std::size_t padding = 64;
    static constexpr std::size_t largestEvent = 1 << 20, largestMember = 64 << 20;

    enum class Found {
        Event,  ///< text() is an object of the list
        Member, ///< key() and text(): a member of the top level
        End
    };

    JsonEvents(ByteSource& source, ImportReport& report, std::string where);
    /// The next event or member; text() and key() are valid until the next call. Throws Error when this is not a trace.
    Found next();
    std::string_view text() const { return {m_buffer.data() + m_textBegin, m_textEnd - m_textBegin}; }
    const std::string& key() const { return m_key; }
    std::int64_t events() const { return m_events; }

private:
    enum class Place { Beginning, TopLevel, List, End };

    bool fill();
    int peek();
    int peekPastBlanks();
    bool scanValue(std::size_t limit);
    Found nextEvent();
    Found nextMember();

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
    bool m_tooLarge = false;
    std::int64_t m_events = 0;
};

} // namespace pipewright
