// SPDX-License-Identifier: GPL-3.0-or-later
// Turns traces into costs: per stage and operation the median measured time over the typical steps (stepvariation.h),
// per link the latency and bandwidth of its transfers (handoff.h), per device and operation the gap that the host
// leaves before a block (hostgaps.h). Each comes from its own records, never from the length of the step, so time of
// blocks or of the host is not attributed to a link.
#pragma once

#include "core/design/design.h"
#include "traces/analysis/handoff.h"
#include "traces/analysis/hostgaps.h"
#include "traces/analysis/stepvariation.h"
#include "traces/store/tracereader.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright {

/// The measurements behind one time of the design.
struct CalibrationFit {
    Op op = Op::F;
    int stage = 0;
    Typical time{};
};

struct Calibration {
    Design design;
    std::vector<CalibrationFit> fits;      ///< by stage, then operation
    std::vector<int> unmeasured{};         ///< stages that keep the design's costs
    std::vector<HostGapFit> gaps{};        ///< by device, then operation
    std::vector<LinkFit> links{};          ///< by pair, then size
    std::vector<StepLengths> steps{};      ///< per trace
    std::optional<Nanoseconds> makespan{}; ///< the median measured one; unset if stages were not measured
    std::vector<std::string> notes{};      ///< how estimates were made
};

/// What to do with stages whose forward or backward is missing in the traces.
enum class UnmeasuredStages { Refuse, Keep };

/// What to do with traces whose devices waited for processor cores for more than a third of their time: their costs are
/// those of the other programs, too.
enum class BusyMachine { Refuse, Take };

struct NamedTrace {
    const TraceReader* trace = nullptr;
    std::string name;
};

/// A range of step numbers, both ends included.
struct StepRange {
    int first = 0, last = 0;
};

/// From several traces together; every step of every trace has the same weight. Block times are those that the traces'
/// readers use. `only`: the steps of each trace that count, also a first one. Throws Error as below.
Calibration calibrate(const Design& design, const std::vector<NamedTrace>& traces,
                      UnmeasuredStages rest = UnmeasuredStages::Refuse, const std::optional<StepRange>& only = {},
                      BusyMachine busy = BusyMachine::Refuse);

/// The design with measured costs in place of its own (source "measured: FILE"). The first step counts only if there
/// are no others; outliers never count. Overlapped pairs get their measured factor. If only some of a full backward and
/// its two halves were measured, the rest is estimated: split by the model's ratio of work (or that of the present
/// costs), or added up. In PyTorch the first stage's input needs no gradient, so its whole backward counts as weight
/// gradient. Other operations without a record keep their cost; Costs say where each number comes from. Throws Error
/// when the trace has no finished step, is of another program, lacks stages or was recorded on a busy machine.
Design calibrate(const Design& design, const TraceReader& trace, const std::string& traceName);

} // namespace pipewright
