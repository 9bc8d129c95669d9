// SPDX-License-Identifier: GPL-3.0-or-later
// Liveness, the second half of compile. Projects the global task sequence onto the devices, which gives each its
// instruction list; frees every buffer after its last use; and adds up the live bytes, which gives each device's
// peak.
#pragma once

#include "core/program/program.h"

namespace pipewright {

/// The number of threads with which the projection is fastest on this machine: 1 for a small program.
int projectionThreads(const Program& program);

enum class Lists : std::uint8_t {
    Written,
    LeftOut, ///< instruction lists and live bytes, most of a Program's memory; devices still have their peaks
};

/// Fills program.devices. A sent buffer is freed when its send is over, which is waited for before the
/// `outstandingSends`-th following send on the same channel, or at the end of the loop. Each of the `threads` works
/// on some of the devices; their number does not change the result. O(tasks + buffers).
void projectOntoDevices(Program& program, int devices, int outstandingSends, int threads = 1,
                        Lists lists = Lists::Written);

/// Some consecutive devices of a Program whose lists were left out, with theirs. O(tasks + buffers).
std::vector<Program::Device> withLists(const Program& program, int first, int end, int outstandingSends);

} // namespace pipewright
