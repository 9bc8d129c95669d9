// SPDX-License-Identifier: GPL-3.0-or-later
// A trace becomes costs: per stage and operation the mean measured time over the steps of middle length, per
// link latency and bandwidth of the hand-offs (handoff.h). Means, because a makespan is a sum of durations;
// of the middle half of the steps, because an interrupted step says nothing about the others.
#pragma once

#include "core/program/design.h"
#include "traces/tracereader.h"

namespace pipewright {

/// The design with measured costs in place of its own (source "measured: FILE"). The first step never counts
/// when there are others. Predicted with them, the design takes as long as the steps did, as far as its
/// links can make it; overlapped pairs get the factor that they took. Operations that the trace has no record of
/// keep their cost. Throws Error when the trace
/// has no finished step or is of another program.
Design calibrate(const Design& design, const TraceReader& trace, const std::string& traceName);

} // namespace pipewright
