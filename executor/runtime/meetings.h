// SPDX-License-Identifier: GPL-3.0-or-later
// Collectives of devices that do things later than they are issued: each member finds out by itself when it came to one
// and when it was done, and the last to find out knows how long the collective took: from when the last member had come
// until the last was done.
#pragma once

#include "core/base/units.h"
#include "core/program/program.h"

#include <map>
#include <mutex>
#include <optional>

namespace pipewright {

class Meetings {
public:
    struct Span {
        Nanoseconds start = 0, end = 0;
    };
    /// One member's times, from any thread; nothing until all of so many have told theirs.
    std::optional<Span> add(TaskId task, int members, Nanoseconds start, Nanoseconds end);
    /// Between steps: forgets those of which not all were told.
    void clear() { m_told.clear(); }

private:
    struct Told {
        int members = 0;
        Span span;
    };
    std::mutex m_mutex; ///< guards what follows
    std::map<TaskId, Told> m_told;
};

} // namespace pipewright
