// SPDX-License-Identifier: GPL-3.0-or-later
// GPUs behind the backend interface, through the plugin's table. A pipeline device is a GPU, or one of several
// that share a GPU, each with a stream of its own. A link is a stream of its own too: when both sides are
// posted, whoever came later issues the copy there, behind what either device had issued until its posting, and
// nobody waits on the host. A wait holds the host up only until the other side is posted; from then on the
// streams keep the order among themselves. With the table's functions made of memcpy the same code runs without
// a GPU, which is how the conformance suite tests it everywhere.
#pragma once

#include "executor/backend.h"
#include "executor/cuda/table.h"

#include <vector>

namespace pipewright {

/// `gpuOfDevice[d]` is the GPU that pipeline device d runs on. The table must outlive the backend.
std::unique_ptr<Backend> createCudaBackend(const PipewrightCudaTable& table, std::vector<int> gpuOfDevice);

/// Between the host and a region of a device of such a backend; returns when it is done. Throws Error.
void writeToDevice(const PipewrightCudaTable& table, int gpu, Region to, const void* from);
void readFromDevice(const PipewrightCudaTable& table, int gpu, Region from, void* to);

} // namespace pipewright
