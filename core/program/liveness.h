// SPDX-License-Identifier: GPL-3.0-or-later
// Second half of compile: what each device does. Projects the global task sequence onto instruction lists,
// frees every buffer after its last use, and adds up the live bytes on the way, which gives the peaks.
#pragma once

#include "core/program/program.h"

namespace pipewright {

/// As many threads as shorten the projection on this machine: 1 for a small program.
int projectionThreads(const Program& program);

/// Fills program.devices. A buffer that was sent is freed before the `outstandingSends`-th following send
/// on the same channel, or at the end of the loop. The result is the same for any number of `threads`, which share
/// the devices out among them. O(tasks + buffers).
void projectOntoDevices(Program& program, int devices, int outstandingSends, int threads = 1);

} // namespace pipewright
