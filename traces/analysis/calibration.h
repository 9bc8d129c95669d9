// SPDX-License-Identifier: GPL-3.0-or-later
// A trace becomes costs: per stage and operation the mean measured time over the steps of middle length, per
// link latency and bandwidth of the hand-offs (handoff.h). Means, because a makespan is a sum of durations;
// of the middle half of the steps, because an interrupted step says nothing about the others.
#pragma once

#include "core/design/design.h"
#include "traces/store/tracereader.h"

#include <string>
#include <vector>

namespace pipewright {

/// How well one cost is known: what was taken over, and the samples it stands for.
struct CalibrationFit {
    Op op = Op::F;
    int stage = 0;
    Nanoseconds value = 0;              ///< the mean, which the design gets
    Nanoseconds median = 0, spread = 0; ///< spread: median absolute deviation, in one and the same unit
    std::int64_t samples = 0;
};

struct Calibration {
    Design design;
    std::vector<CalibrationFit> fits; ///< by stage, then operation
    std::vector<int> unmeasured{};    ///< stages that keep the design's costs
};

/// What becomes of stages of which the traces have no forward or no backward.
enum class UnmeasuredStages { Refuse, Keep };

struct NamedTrace {
    const TraceReader* trace = nullptr;
    std::string name;
};

/// From several traces at once, each step of each counting alike. Throws Error as below.
Calibration calibrate(const Design& design, const std::vector<NamedTrace>& traces,
                      UnmeasuredStages rest = UnmeasuredStages::Refuse);

/// The design with measured costs in place of its own (source "measured: FILE"). The first step never counts
/// when there are others. Predicted with them, the design takes as long as the steps did, as far as its
/// links can make it; overlapped pairs get the factor that they took. Of a full backward and its halves
/// what was not measured is estimated from what was: split by the model's ratio of work (or that of the present costs),
/// or added up. Other operations that the trace has no record of keep their cost; Costs say which number is which.
/// Throws Error when the trace has no finished step, is of another program or leaves out stages.
Design calibrate(const Design& design, const TraceReader& trace, const std::string& traceName);

} // namespace pipewright
