// SPDX-License-Identifier: GPL-3.0-or-later
// Duration of each collective on asynchronous devices: every member reports when it reached the collective and when it
// was done. The collective lasts from the arrival of the last member until the last is done.
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
    /// Adds one member's times; from any thread. Returns the span when all `members` have reported, else nothing.
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
