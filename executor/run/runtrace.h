// SPDX-License-Identifier: GPL-3.0-or-later
// The trace of a run. Losing it does not end the run: a full disk or a removed file is reported at once, later records
// are dropped and counted, and the run still returns its numbers.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/run/run.h"
#include "traces/store/tracewriter.h"

#include <functional>
#include <optional>

namespace pipewright {

/// Most records of one step on one device, from which the size of the rings follows.
std::size_t recordsPerStep(const Program& program);

class RunTrace final : public RecordSink {
public:
    /// Throws Error as TraceWriter does. `header` without its clock; `tell` (may be empty) is called once, when the
    /// trace is lost, on the thread that records.
    RunTrace(const std::string& path, bool overwrite, const Design& design, const Program& program, TraceHeader header,
             std::function<void(const Diagnostics&)> tell);

    /// Replaces an old trace, now that the run can start. Throws Error.
    void begin() { m_writer.commit(); }

    void append(const std::vector<TaskRecord>& records) override;
    void append(const std::vector<MemoryRecord>& records) override;
    void append(const StepRecord& record) override;
    void append(const std::vector<GpuRecord>& records) override;
    void commit() override;
    void check() override;

    /// Puts the trace's losses into the result, and completes the trace unless it was lost or the run was cancelled.
    void finish(RunResult& result, const std::vector<Bytes>& peakBytes);

private:
    template<typename Action>
    void attempt(const Action& action, std::size_t records);

    std::string m_path;
    TraceWriter m_writer;
    std::function<void(const Diagnostics&)> m_tell;
    std::optional<Diagnostic> m_fault;
    std::int64_t m_pending = 0, m_dropped = 0; ///< records: not yet committed; lost
};

} // namespace pipewright
