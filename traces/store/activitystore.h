// SPDX-License-Identifier: GPL-3.0-or-later
// Another tool's trace as a Pipewright trace: tables with Nsight's column names (schema.h) for SQL, and the same slices
// as packed arrays for fast opening. The file is written atomically. Ten million slices take about ten seconds to write
// and under one second to open (bench_traces.cpp).
#pragma once

#include "core/predict/timeline.h"
#include "traces/store/linktransfers.h"
#include "traces/store/progress.h"
#include "traces/store/tracewriter.h"
#include "traces/store/tracks.h"

namespace pipewright {

/// The blocks that were recognised in a trace (recognisedblocks.h): a dictionary of computations and transfers, and
/// when they ran.
struct RecognisedBlocks {
    std::vector<Task> tasks;
    std::vector<std::string> labels; ///< per task, as Program::label() writes them
    std::vector<TaskRecord> records;
    std::vector<StepRecord> steps;
    int devices = 0;
};

/// Throws Error; a file that exists stays unless `overwrite`. Assigns rows first, which may add repairs to the report.
void writeActivities(const std::string& path, TraceData& data, const RecognisedBlocks& blocks, bool overwrite,
                     const WorkProgress& progress = {});

/// A trace, opened: lanes, tracks, names, counters and arrows. The tables stay in the file.
struct StoredActivities {
    std::string tool, source;
    /// For a run of Pipewright (recordedactivities.h): its devices, to which the devices of its lanes refer. Empty:
    /// imported.
    std::vector<std::string> deviceNames;
    std::int64_t originEpochNs = 0;
    int ranks = 1;
    std::vector<std::string> strings;
    std::vector<TraceLane> lanes;
    std::vector<Track> tracks; ///< by lane, then row
    std::vector<TraceCounter> counters;
    std::vector<TraceFlow> flows;
    std::vector<ClockOffset> clocks;
    LinkTransfers transfers;
    ImportReport report;

    std::size_t slices() const;
};

/// Reads an imported trace or a run of Pipewright. Throws Error when the file is neither.
StoredActivities readActivities(const std::string& path, const WorkProgress& progress = {});

/// True for an imported trace; false for any other file. Throws nothing.
bool holdsActivities(const std::string& path);

} // namespace pipewright
