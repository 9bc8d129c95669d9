// SPDX-License-Identifier: GPL-3.0-or-later
// Writes a recording into SQLite while the run goes on. The file is a database from the first record: WAL
// mode, schema version, a dictionary of the Program's tasks, and the design itself, so a trace opens
// without anything else. Killing the process loses nothing that was committed.
#pragma once

#include "core/program/design.h"
#include "core/program/program.h"

#include <memory>
#include <string>
#include <vector>

namespace pipewright {

/// Times are nanoseconds of one monotonic clock; the reader makes them relative to their step.
struct TaskRecord {
    TaskId task = none;
    std::int32_t step = 0;
    std::int32_t device = 0; ///< the recording device: for a transfer its destination
    Nanoseconds start = 0, end = 0;
};

struct MemoryRecord {
    std::int32_t device = 0;
    std::int32_t step = 0;
    Nanoseconds time = 0;
    Bytes bytes = 0; ///< live on the device from this time on
};

struct StepRecord {
    std::int32_t step = 0;
    Nanoseconds start = 0, end = 0;
    double loss = 0; ///< NaN when the maths has none
};

struct TraceHeader {
    std::string backend; ///< "host", "cuda", "mpi"
    std::string maths;   ///< "training", "timed"
    std::vector<std::string> deviceNames;
    std::int64_t wallClockNs = 0; ///< UTC at clock zero, for aligning ranks
};

class TraceWriter {
public:
    /// Creates the file (never overwrites: throws Error when it exists) and commits design, dictionary, header.
    TraceWriter(const std::string& path, const Design& design, const Program& program, const TraceHeader& header);
    ~TraceWriter();

    void append(const std::vector<TaskRecord>& records);
    void append(const std::vector<MemoryRecord>& records);
    void append(const StepRecord& record);
    /// Everything appended so far becomes visible to readers.
    void commit();
    /// Peaks per device, dropped records and a JSON text with the run's result; marks the trace complete.
    void finish(const std::vector<Bytes>& peakBytes, std::int64_t droppedRecords, const std::string& resultJson);

private:
    struct Private;
    std::unique_ptr<Private> d;
};

/// Removes a trace and what SQLite keeps beside it; nothing happens when there is none. Throws Error.
void removeTrace(const std::string& path);

} // namespace pipewright
