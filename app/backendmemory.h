// SPDX-License-Identifier: GPL-3.0-or-later
// The memory that devices would hold with a backend, also if this machine lacks its GPUs.
#pragma once

#include "core/design/design.h"
#include "executor/run/memorycheck.h"

#include <string>

namespace pipewright::app {

/// For `run --backend BACKEND --maths MATHS` with default values of its other options. Throws Error for an unknown
/// backend.
MemoryCheck memoryWith(const Design& design, const std::string& backend, RunOptions::Maths maths);

/// "predicted: run --backend host allocates at most 36.1 MiB of a device; of it, beside the buffers, at most …".
std::string backendMemoryText(std::span<const HeldMemory> memory, const std::string& backend);

} // namespace pipewright::app
