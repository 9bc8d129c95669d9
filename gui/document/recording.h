// SPDX-License-Identifier: GPL-3.0-or-later
// A recording of a run, opened and read once, and what it says about a design: an Overlay. Laid over the prediction of
// an edited design it is matched again, without opening the file; times are read from it only for another program.
#pragma once

#include "core/predict/predict.h"
#include "core/predict/rangestatistics.h"
#include "traces/analysis/blockkernels.h"
#include "traces/analysis/comparison.h"
#include "traces/analysis/explanation.h"
#include "traces/analysis/gpugaps.h"
#include "traces/analysis/stepvariation.h"

#include <QString>

#include <memory>
#include <string>
#include <vector>

namespace pipewright {

struct Overlay {
    QString path;
    std::vector<StepRecord> steps; ///< all recorded steps
    StepLengths lengths;
    int medianStep = 0;
    int step = 0;      ///< the one that is shown; typicalStep
    Timeline measured; ///< of that step
    Comparison comparison;
    Explanation explanation;
    Metrics metrics;                 ///< as of a prediction, of the measured step
    std::string resultJson;          ///< what the run reported; empty when it did not finish
    std::vector<Nanoseconds> spread; ///< per task: how much its duration varies from step to step
    /// The kernels of the blocks; null when none were recorded, and for the typical step, which is not a recorded
    /// step.
    struct Kernels {
        WorkKind kind() const { return totals.kind; }
        bool ofGpus() const { return kind() == WorkKind::Kernels; }
        std::vector<std::string> names;      ///< of kernels: BlockKernels::Kernel::name
        std::vector<BlockKernels> blocks;    ///< by task
        std::vector<std::vector<TaskId>> of; ///< by device: its tasks with kernels, by their first kernel
        KernelTotals totals;
        std::vector<GpuGaps> gaps; ///< by device
    };
    std::shared_ptr<const Kernels> kernels;
    mutable std::shared_ptr<const RangeIndex> ranges; ///< of the recorded step; made when first asked for
};

/// For one thread at a time.
class Recording {
public:
    static constexpr int medianStep = -1;  ///< the recorded step of median length
    static constexpr int typicalStep = -2; ///< every block at its median over the steps
    /// `step`: its number, or one of these two. Throws Error when the file cannot be read.
    Recording(const QString& path, int step);
    const QString& path() const { return m_path; }
    /// Throws Error when the recording is of another program.
    std::shared_ptr<Overlay> over(const Design& design, const std::shared_ptr<const Prediction>& prediction);

private:
    void read(const std::shared_ptr<const Prediction>& prediction); ///< unless its program was read last

    const QString m_path;
    const TraceReader m_trace;
    const std::vector<StepRecord> m_steps;
    const int m_medianStep, m_step;
    const std::vector<Bytes> m_peaks;
    const std::string m_resultJson;
    // What was read for a program, that of this prediction.
    std::shared_ptr<const Prediction> m_of;
    StepVariation m_variation;
    Timeline m_measured;
    std::shared_ptr<const Overlay::Kernels> m_kernels;
};

} // namespace pipewright
