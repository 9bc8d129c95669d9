// SPDX-License-Identifier: GPL-3.0-or-later
// What devices would hold with one of the backends, of which this machine may lack the GPUs.
#pragma once

#include "core/design/design.h"
#include "executor/run/memorycheck.h"

#include <string>

namespace pipewright::app {

/// Of `run --backend BACKEND --maths MATHS` with its other options as they are by default. Throws Error for a name that
/// is no backend's.
MemoryCheck heldOn(const Design& design, const std::string& backend, RunOptions::Maths maths);

/// "predicted: run --backend host allocates at most 36.1 MiB of a device; of it, beside the buffers, at most …".
std::string heldText(std::span<const HeldMemory> memory, const std::string& backend);

} // namespace pipewright::app
