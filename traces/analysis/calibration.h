// SPDX-License-Identifier: GPL-3.0-or-later
// A trace becomes costs: per stage and operation the median measured time over the typical steps (stepvariation.h), per
// link latency and bandwidth of its transfers (handoff.h), per device and operation the gap that the host leaves before
// a block (hostgaps.h). Each comes from its own records, none from the length of the step, so what a block or the host
// does is not charged to a link.
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

/// What a time of the design was taken over.
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
    std::optional<Nanoseconds> makespan{}; ///< the median measured one; unset: stages were not measured
    std::vector<std::string> notes{};      ///< how estimates were reasoned
};

/// What becomes of stages of which the traces have no forward or no backward.
enum class UnmeasuredStages { Refuse, Keep };

struct NamedTrace {
    const TraceReader* trace = nullptr;
    std::string name;
};

/// Steps by number, both ends among them.
struct StepRange {
    int first = 0, last = 0;
};

/// From several traces at once, each step of each counting alike, with the times of blocks that their readers take.
/// `only`: the steps of each trace that count, a first one among them too. Throws Error as below.
Calibration calibrate(const Design& design, const std::vector<NamedTrace>& traces,
                      UnmeasuredStages rest = UnmeasuredStages::Refuse, const std::optional<StepRange>& only = {});

/// The design with measured costs in place of its own (source "measured: FILE"). The first step never counts when there
/// are others, and outliers do not. Overlapped pairs get the factor that they took. Of a full backward and its halves
/// what was not measured is estimated from what was: split by the model's ratio of work (or that of the present costs),
/// or added up; PyTorch's first stage, whose input wants no gradient, does all of it in its weight gradient. Other
/// operations that the trace has no record of keep their cost; Costs say which number is which.
/// Throws Error when the trace has no finished step, is of another program or leaves out stages.
Design calibrate(const Design& design, const TraceReader& trace, const std::string& traceName);

} // namespace pipewright
