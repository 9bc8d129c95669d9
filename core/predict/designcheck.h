// SPDX-License-Identifier: GPL-3.0-or-later
// All checks of a design before it runs: the schedule, its costs, the communication of the compiled Program and of its
// groups' members, and each device's peak against its memory.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "core/predict/peakbreakdown.h"

namespace pipewright {

/// Empty when the design can run. Exceeded memory is an error; communication that would hang only where
/// sends and receives block is a warning. `crossed` receives the breakdown of the peak for every device whose memory is
/// too small. O(blocks).
Diagnostics checkDesign(const Design& design, std::vector<MemoryPeak>* crossed = nullptr);

/// "transfers share switch: " and the bus discipline; empty when the Program has no bus.
std::string busSentence(const Program& program);

} // namespace pipewright
