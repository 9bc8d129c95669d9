// SPDX-License-Identifier: GPL-3.0-or-later
// How long each collective took, where devices do things later than they are issued: every member reports when it
// reached the collective and when it was done. It lasts from when the last member came until the last was done.
#pragma once

#include "core/base/units.h"
#include "core/program/program.h"

#include <map>
#include <mutex>
#include <optional>

namespace pipewright {

class CollectiveSpans {
public:
    struct Span {
        Nanoseconds start = 0, end = 0;
    };
    /// Adds one member's times; from any thread. Nothing until `members` of them have reported.
    std::optional<Span> add(TaskId task, int members, Nanoseconds start, Nanoseconds end);
    /// Between steps: forgets collectives that not all members have reported.
    void clear() { m_open.clear(); }

private:
    struct Open {
        int reported = 0;
        Span span;
    };
    std::mutex m_mutex; ///< guards what follows
    std::map<TaskId, Open> m_open;
};

} // namespace pipewright
