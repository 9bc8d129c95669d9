// SPDX-License-Identifier: GPL-3.0-or-later
// Common to the writers of traces for other viewers: the row of a slice, its name, and the end of a transfer's arrow.
#pragma once

#include "core/program/program.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace pipewright {

/// Assigns each slice to the first free row, since viewers drop overlapping slices. Call in order of start.
class FreeRows {
public:
    std::size_t rowFor(Nanoseconds start, Nanoseconds end);
    std::size_t count() const { return m_freeFrom.size(); }

private:
    std::vector<Nanoseconds> m_freeFrom;
};

std::string_view categoryOf(const Program& program, const Task& task); ///< "forward", "transfer of activation", …

/// Per task: of a transfer, the first task that waits for what it carries; else none. O(tasks).
std::vector<TaskId> firstConsumers(const Program& program);

} // namespace pipewright
