// SPDX-License-Identifier: GPL-3.0-or-later
// Faults as text, so that failures can be injected from the command line: "dies:1:2:17" is device 1 in step 2 at
// instruction 17. The kinds are listed with Fault; a slow device needs a delay, "slows:0:0:0:5ms".
#pragma once

#include "executor/runtime/actor.h"

#include <string>

namespace pipewright {

/// KIND:DEVICE:STEP:INSTRUCTION[:DELAY] with KIND one of dies, stalls, slows, throws, out-of-memory, link-stalls,
/// killed. Throws Error, with `where` as its place, when the text is not a fault.
Fault parseFault(const std::string& text, const std::string& where);

/// Throws Error when a run of `steps` steps never reaches the fault's place.
void requirePlace(const Fault& fault, const Program& program, int steps, const std::string& where);

} // namespace pipewright
