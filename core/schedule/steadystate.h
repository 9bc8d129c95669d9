// SPDX-License-Identifier: GPL-3.0-or-later
// The steady state of a long schedule: between warm-up and cool-down every device repeats a sequence of blocks, each
// time for later microbatches. Finds the period from the order alone and makes a schedule with fewer repetitions;
// results for that schedule can be copied for the other repetitions after a check that they repeat too
// (program/repeat.h).
#pragma once

#include "core/schedule/schedule.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace pipewright {

struct SteadyState {
    /// The part [begin, end) of a device's order that repeats.
    struct Part {
        std::size_t begin = 0, end = 0;
        std::size_t period = 0; ///< blocks of one repetition
    };
    std::vector<Part> parts; ///< per device
    int microbatches = 0;    ///< per repetition
    int repetitions = 0;     ///< on every device at least
    int inFlight = 0;        ///< from the oldest to the newest microbatch of one period, in repetitions
};

/// Nothing for a schedule that is short or does not repeat, nor for one with replicas, data parallel workers, update
/// blocks, pins, stated transfers or stated orders of parts. O(blocks).
std::optional<SteadyState> findSteadyState(const Schedule& schedule);

/// The same steady state with `repetitions` of its repetitions counted as one.
SteadyState takenTogether(SteadyState steady, int repetitions);

struct ShortenedSchedule {
    Schedule schedule; ///< without `leftOut` repetitions; the microbatches behind them are renumbered
    int leftOut = 0;
    SteadyState steady; ///< of what is left
};

/// The schedule with only `repetitions` of its repetitions, at least 1. O(blocks that are kept).
ShortenedSchedule shorten(const Schedule& schedule, const SteadyState& steady, int repetitions);

} // namespace pipewright
