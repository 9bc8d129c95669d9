// SPDX-License-Identifier: GPL-3.0-or-later
// Groups of GPUs that NCCL connects: one communicator for all of them, made and joined by the calling thread as one
// group. Each member is then used by the one thread of its GPU.
#pragma once

#include "executor/collectives.h"
#include "executor/cuda/cudalink.h"

#include <span>

namespace pipewright {

/// The handles of the GPUs' ranks in a group of their own, connected and warmed up; at most so many multiprocessors for
/// an operation, 0: as NCCL likes. Throws Error, after which the calling thread may go on to use NCCL.
std::vector<void*> joinGroup(std::span<const CudaGpu> gpus, int multiprocessors);

/// NCCL has been opened, and no GPU is there twice. Throws Error when they cannot be connected.
std::vector<std::unique_ptr<Communicator>> joinNccl(std::span<const CudaGpu> gpus);

} // namespace pipewright
