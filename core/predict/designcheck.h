// SPDX-License-Identifier: GPL-3.0-or-later
// All checks of a design before it runs: the schedule, its costs, the communication of the compiled Program and of its
// groups' members, and each device's peak against its memory.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "core/predict/peakbreakdown.h"

namespace pipewright {

/// Empty when the design can run. Exceeded memory is an error; communication that would hang only where
/// sends and receives block is a warning. What is alike of several devices is said once. `crossed` receives the peak of
/// every device or member of a group whose memory is too small; only a device's has its breakdown. O(blocks).
Diagnostics checkDesign(const Design& design, std::vector<MemoryPeak>* crossed = nullptr);

/// "transfers share switch: " and the bus discipline; empty when the Program has no bus.
std::string busSentence(const Program& program);
/// How transfers wait for each other beside buses; empty when they do not.
std::string streamSentence(const Program& program);

} // namespace pipewright
