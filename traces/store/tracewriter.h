// SPDX-License-Identifier: GPL-3.0-or-later
// Writes a recording into SQLite during the run. The file is a complete database from the first record: WAL mode,
// schema version, a dictionary of the Program's tasks, and the design. Killing the process loses nothing committed.
#pragma once

#include "core/design/design.h"
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

/// A GPU recorder's event: kernel, copy, call or overhead, with the task that issued it.
struct GpuRecord {
    enum class Kind : std::uint8_t {
        Kernel,
        Copy,
        Set,
        Overhead, ///< of the recorder itself
        Memory,   ///< allocated or released at `start`
        Call,     ///< of the host, to CUDA; joined by its correlation to what it launched
        Operator, ///< of a framework, on a thread of the host that is device `toDevice`
        /// A part of a block: run by member `device` of the group at device `toDevice`; or, with a `stream`, on that
        /// stream of device `toDevice` (a PartStream).
        Part,
    };
    std::int32_t step = 0;
    TaskId task = none; ///< none: outside of every block
    Kind kind = Kind::Kernel;
    std::string name;                      ///< of a kernel as its compiler mangled it
    std::int32_t device = -1, stream = -1; ///< a GPU and a stream as CUDA numbers them; -1: of none
    Nanoseconds start = 0, end = 0;
    Bytes bytes = -1;           ///< copied, set, or allocated (released: below 0); -1 on a kernel
    std::int32_t copyKind = 0;  ///< as CUPTI numbers them
    std::int32_t toDevice = -1; ///< of a copy between GPUs
    std::uint32_t correlation = 0;
    std::uint64_t graphNode = 0; ///< of a captured block
    std::int64_t thread = -1;    ///< of a call or an operator: its thread
    std::int32_t rank = 0;       ///< the recording process of a run with several
};

struct StepRecord {
    std::int32_t step = 0;
    Nanoseconds start = 0, end = 0;
    double loss = 0;           ///< NaN when the maths has none
    Nanoseconds coreWait = -1; ///< of a device's thread for a processor core, on average; -1: not known
};

struct TraceHeader {
    std::string backend; ///< "host", "cuda", "mpi"
    std::string maths;   ///< "training", "timed"
    std::vector<std::string> deviceNames;
    std::int64_t wallClockNs = 0; ///< UTC at clock zero, for aligning ranks
    std::string tool{};           ///< of an imported trace, whose it is: "PyTorch Kineto"; not written here
};

/// Where records go: a trace file, or memory in tests. Called by one thread at a time.
class RecordSink {
public:
    virtual ~RecordSink() = default;
    virtual void append(const std::vector<TaskRecord>& records) = 0;
    virtual void append(const std::vector<MemoryRecord>& records) = 0;
    virtual void append(const StepRecord& record) = 0;
    virtual void append(const std::vector<GpuRecord>&) {}
    virtual void commit() = 0;
    /// Called when nothing was appended for a while: throws Error when the committed file no longer exists.
    virtual void check() {}
};

class TraceWriter final : public RecordSink {
public:
    /// Writes design, dictionary and header to a temporary file. The first record or commit() renames it to `path`;
    /// until then an old trace is unchanged. Throws Error when `path` cannot be written to: it exists and `overwrite`
    /// is false, another run is writing it, or it is no regular file.
    TraceWriter(const std::string& path, const Design& design, const Program& program, const TraceHeader& header,
                bool overwrite = false);
    ~TraceWriter() override;

    void append(const std::vector<TaskRecord>& records) override;
    void append(const std::vector<MemoryRecord>& records) override;
    void append(const StepRecord& record) override;
    /// Into the tables of imported traces (gputables.h), which are made with the first of them.
    void append(const std::vector<GpuRecord>& records) override;
    /// Everything appended so far becomes visible to readers. Throws Error on failure, and as check() does; the message
    /// says which part of the recording exists.
    void commit() override;
    /// Throws Error when the file was removed, moved or replaced.
    void check() override;
    /// Peaks per device, dropped records and a JSON text with the run's result; marks the trace complete.
    void finish(const std::vector<Bytes>& peakBytes, std::int64_t droppedRecords, const std::string& resultJson);

private:
    struct Private;
    std::unique_ptr<Private> d;
};

} // namespace pipewright
