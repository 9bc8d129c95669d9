// SPDX-License-Identifier: GPL-3.0-or-later
// What all libraries put on streams: kernels and copies, seen by a profiler when they run.
#pragma once

#include "engine.h"
#include "observer.h"

namespace standin {

/// A kernel of a library or of the program. False: it cannot be launched, for the stream is none of the current GPU's.
bool launchKernel(Stream& stream, std::string name, std::function<void()> body);
/// What cuBLASLt does: a launch by the driver's call, seen as that.
bool launchByDriver(Stream& stream, std::string name, std::function<void()> body);
void pushActivity(Stream& stream, Activity activity, std::function<void()> body);

} // namespace standin
