// SPDX-License-Identifier: GPL-3.0-or-later
// A trace becomes costs: per stage and operation the median measured time, per link latency and bandwidth.
#pragma once

#include "core/program/design.h"
#include "traces/tracereader.h"

namespace pipewright {

/// The design with measured costs in place of its own (source "measured: FILE"). Uses all finished steps
/// but the first. Operations that the trace has no record of keep their cost. Throws Error when the trace
/// has no finished step or is of another program.
Design calibrate(const Design& design, const TraceReader& trace, const std::string& traceName);

} // namespace pipewright
