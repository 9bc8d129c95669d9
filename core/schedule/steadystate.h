// SPDX-License-Identifier: GPL-3.0-or-later
// Most of a long schedule repeats itself: between its first and its last microbatches every device does the same
// again and again, some microbatches further on. What is derived from such a schedule can be derived from one with
// fewer repetitions and then be copied, once it has shown that it repeats itself too: here the order alone decides.
#pragma once

#include "core/schedule/schedule.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace pipewright {

struct SteadyState {
    /// The blocks begin to end - 1 of a device's order repeat themselves.
    struct Part {
        std::size_t begin = 0, end = 0;
        std::size_t period = 0; ///< blocks of one repetition
    };
    std::vector<Part> parts; ///< per device
    int microbatches = 0;    ///< by which a repetition is further on than the one before
    int repetitions = 0;     ///< that all devices have
    int inFlight = 0;        ///< repetitions from the oldest to the newest microbatch that a device works on at a time
};

/// Nothing for a schedule that is short or does not repeat itself. One with replicas, updates amid the step, pins or
/// stated transfers is taken for one that does not. O(blocks).
std::optional<SteadyState> findSteadyState(const Schedule& schedule);

/// The same with so many repetitions counted as one.
SteadyState takenTogether(SteadyState steady, int repetitions);

struct ShortenedSchedule {
    Schedule schedule; ///< without `leftOut` repetitions; the microbatches behind them are renumbered
    int leftOut = 0;
    SteadyState steady; ///< of what is left
};

/// The schedule with so many of its repetitions: 1 at least. O(blocks that are kept).
ShortenedSchedule shorten(const Schedule& schedule, const SteadyState& steady, int repetitions);

} // namespace pipewright
