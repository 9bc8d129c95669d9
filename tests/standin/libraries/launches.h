// SPDX-License-Identifier: GPL-3.0-or-later
// Puts kernels and copies on streams, for all libraries; a profiler sees them when they run.
#pragma once

#include "engine.h"
#include "observer.h"

namespace standin {

/// A kernel of a library or of the program. False: it cannot be launched, as the stream does not belong to the current
/// GPU.
bool launchKernel(Stream& stream, std::string name, std::function<void()> body);
/// A launch by the driver's call, as cuBLASLt does, and recorded as such.
bool launchByDriver(Stream& stream, std::string name, std::function<void()> body);
void pushActivity(Stream& stream, Activity activity, std::function<void()> body);

} // namespace standin
