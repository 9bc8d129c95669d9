// SPDX-License-Identifier: GPL-3.0-or-later
// The categories of Chrome traces ("cat") by which PyTorch's profiler (Kineto) says of what kind a slice is. One table
// for reading and writing, so that an exported trace is imported as what it was.
#pragma once

#include "traces/store/activity.h"

#include <string_view>

namespace pipewright {

/// "kernel", "gpu_memcpy", …: the category that profilers of today write for the kind.
std::string_view chromeCategory(ActivityKind kind);

/// The kind of a category, also of older profilers and of other accelerators' runtimes; Other if it is not known.
ActivityKind kindOfCategory(std::string_view category);

} // namespace pipewright
