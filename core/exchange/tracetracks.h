// SPDX-License-Identifier: GPL-3.0-or-later
// What the writers of traces for other viewers share: which row of a device a slice stands in, what it is called there,
// and where the arrow of a transfer ends.
#pragma once

#include "core/program/program.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace pipewright {

/// Slices of a row must not overlap, or viewers drop them: each goes to the first row that is free. Asked by start.
class FreeRows {
public:
    std::size_t rowFor(Nanoseconds start, Nanoseconds end);
    std::size_t count() const { return m_freeFrom.size(); }

private:
    std::vector<Nanoseconds> m_freeFrom;
};

std::string_view categoryOf(const Task& task); ///< "forward", "transfer of activation", …

/// Per task: of a transfer, the first task that waits for what it carries; else none. O(tasks).
std::vector<TaskId> firstConsumers(const Program& program);

} // namespace pipewright
