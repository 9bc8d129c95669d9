// SPDX-License-Identifier: GPL-3.0-or-later
// The ranges on a rank's host threads in which blocks of a pipeline run, in another tool's trace. PyTorch's pipeline
// runtime names them ("PP:0F3"), and so do Pipewright's own names ("F0.3") and the zero-bubble runtimes
// (zerobubblenames.h). PyTorch's stock schedules have no such
// names; their blocks are inferred from operators (stockschedules.h). In a trace without a device a range contains the
// blocking receive before its work; beginAfterReceives() moves its start behind the receive.
#pragma once

#include "core/exchange/pytorchaction.h"
#include "traces/store/activity.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace pipewright {

struct PipelineRange {
    Nanoseconds start = 0, end = 0;
    std::uint32_t lane = 0;
    std::uint32_t name = 0; ///< id in TraceData::strings
    std::vector<PytorchAction> actions;
    bool receives = false;           ///< it waits for another rank's data before it works
    Nanoseconds waitsFrom = 0;       ///< if it receives: its start before beginAfterReceives()
    std::optional<Nanoseconds> sent; ///< when its result was sent, unless a range of its own shows that
};

/// Start and end of ProfilerStep#N, by rank and N.
using ProfilerSteps = std::map<int, std::map<int, std::pair<Nanoseconds, Nanoseconds>>>;
ProfilerSteps profilerSteps(const TraceData& data);

struct NamedRanges {
    std::vector<PipelineRange> host;
    std::map<std::pair<int, std::uint32_t>, std::vector<PipelineRange>> device; ///< annotations, by rank and name
};
/// Ranges whose names tell what runs, in any order. Reports names that were read as another runtime's. O(activities).
NamedRanges namedRanges(TraceData& data);

/// Moves the start of every range that receives to the end of its receive ("gloo:recv") or, if that is not recorded, to
/// its first operator. O((activities + ranges) log activities).
void beginAfterReceives(const TraceData& data, std::vector<PipelineRange>& ranges);

/// True for the operator of a send or a receive between two ranks: "c10d::send".
bool isPointToPoint(std::string_view name);
/// True for operators that prepare transfer buffers, and for communication: no block begins with one.
bool isNoWork(std::string_view name);

} // namespace pipewright
