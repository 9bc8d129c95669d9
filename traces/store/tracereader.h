// SPDX-License-Identifier: GPL-3.0-or-later
// Reads a recording, also while it is being written or after its run was killed: SQLite replays the write-ahead log.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "core/predict/timeline.h"
#include "traces/store/gpuwork.h"
#include "traces/store/tracewriter.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// How a block's time is measured: between the events around it on its device, or from the start of its first kernel,
/// copy or set on a GPU to the end of the last one, as recorded by CUPTI.
enum class BlockTime : std::uint8_t { Events, Kernels };
inline constexpr BlockTime blockTimes[] = {BlockTime::Events, BlockTime::Kernels};
std::string_view nameOf(BlockTime by); ///< "events", "kernels"

class TraceReader {
public:
    /// Throws Error when the file is no Pipewright trace or has a newer schema, and for BlockTime::Kernels when it has
    /// no kernels.
    explicit TraceReader(const std::string& path, BlockTime by = BlockTime::Events);
    ~TraceReader();

    BlockTime blockTime() const;
    std::optional<WorkKind> recordedWork() const; ///< the recorded content of blocks; none: not recorded
    bool holdsGpuWork() const { return recordedWork().has_value(); }
    bool holdsKernels() const; ///< of GPUs

    TraceHeader header() const;
    bool holdsDesign() const; ///< false: it was imported
    Design design() const;
    bool complete() const; ///< the writer finished it
    /// A warning about a trace that is not complete: how many steps it holds, and what may be missing. Empty otherwise.
    Diagnostics whatMayBeMissing() const;
    std::int64_t droppedRecords() const;
    std::string resultJson() const;        ///< "" when not complete
    std::vector<StepRecord> steps() const; ///< finished steps, in order
    /// Times of one step, relative to its start, for a Program with the dictionary's tasks. Tasks without a record have
    /// start = end = notRun, and those without a kernel, transfers among them, keep the times of their events. Throws
    /// Error when the dictionary is not this program's.
    Timeline timeline(const Program& program, int step) const { return timeline(program, step, blockTime()); }
    Timeline timeline(const Program& program, int step, BlockTime by) const;
    /// timeline() of many steps, without their memory: the program is matched once, and the next step is read on
    /// another thread while `use` processes the present one. `use` must not call this reader.
    void eachStep(const Program& program, const std::vector<int>& steps,
                  const std::function<void(int step, const Timeline&)>& use) const;
    /// The GPU work of that step; empty when CUPTI did not record. Errors as for timeline().
    GpuWork gpuWork(const Program& program, int step) const;
    /// The step whose length is the median, the first (warm-up) step left out when there are others.
    int medianStep() const;
    std::vector<Bytes> peakBytes() const; ///< per device; highest recorded when not complete

private:
    struct Private;
    std::unique_ptr<Private> d;
};

} // namespace pipewright
