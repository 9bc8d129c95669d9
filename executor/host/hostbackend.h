// SPDX-License-Identifier: GPL-3.0-or-later
// The machine itself as a backend: every device is a thread's worth of CPU and ordinary memory. Always
// there, needs nothing, deterministic in its results, and the reference for every other backend.
#pragma once

#include "executor/runtime/backend.h"

namespace pipewright {

std::unique_ptr<Backend> createHostBackend(int devices);
/// Each device refuses to hold more than `memory` bytes at one time, as a GPU would.
std::unique_ptr<Backend> createHostBackend(int devices, Bytes memory);

} // namespace pipewright
