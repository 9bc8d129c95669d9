// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that can be said against a design before it runs: the schedule, its costs, the communication
// of the compiled Program, of its groups' members too, and each device's peak against its memory.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "core/predict/peakbreakdown.h"

namespace pipewright {

/// Empty when the design can run. Exceeded memory is an error; communication that would hang only where
/// sends and receives block is a warning. `crossed` receives, for every device whose memory is too small, what
/// fills it at its peak. O(blocks).
Diagnostics checkDesign(const Design& design, std::vector<MemoryPeak>* crossed = nullptr);

/// "transfers share switch: " and how it serves them; empty when the Program has no bus.
std::string busSentence(const Program& program);

} // namespace pipewright
