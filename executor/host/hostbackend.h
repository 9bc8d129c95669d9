// SPDX-License-Identifier: GPL-3.0-or-later
// The machine itself as a backend: every device is a thread's worth of CPU and ordinary memory. It needs nothing else,
// is always available, gives deterministic results, and is the reference for every other backend.
#pragma once

#include "executor/runtime/backend.h"

namespace pipewright {

std::unique_ptr<Backend> createHostBackend(int devices);
/// Each device refuses to hold more than `memory` bytes at a time, as a GPU would.
std::unique_ptr<Backend> createHostBackend(int devices, Bytes memory);

} // namespace pipewright
