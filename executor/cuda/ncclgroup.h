// SPDX-License-Identifier: GPL-3.0-or-later
// Groups of GPUs that NCCL connects: one communicator for all of them, made and joined by the calling thread as one
// group. Each member is then used by the one thread of its device. What these ask for is issued by the owners of the
// GPUs, when all members have come to it, and stands in the same order among whatever else NCCL is to do on each GPU.
#pragma once

#include "executor/cuda/nccllink.h"
#include "executor/runtime/collectives.h"

#include <functional>
#include <span>
#include <string>

namespace pipewright {

/// The handles of the GPUs' ranks in a group of their own, connected and warmed up; at most so many multiprocessors for
/// an operation, 0: as NCCL likes. Throws Error, after which the calling thread may go on to use NCCL.
std::vector<void*> joinGroup(std::span<const CudaGpu> gpus, int multiprocessors, Nanoseconds deadline);

/// NCCL has been opened, and no GPU is there twice; the owners are those of the GPUs, and outlive the members. A call
/// waits until all members have come to theirs and the own one is issued, not until it is done. Throws Error when they
/// cannot be connected within the deadline.
std::vector<std::unique_ptr<Communicator>> joinNccl(std::span<const CudaGpu> gpus,
                                                    const std::vector<NcclOwner*>& owners, Nanoseconds deadline);

/// Waits until all ranks of the members' group have come, and returns nothing; or why they have not: what NCCL says,
/// what `failureReason` says, or `late` when the deadline has passed.
std::string whyNotJoined(const PipewrightCudaTable& table, std::span<void* const> members, Nanoseconds deadline,
                         const std::string& late, const std::function<std::string()>& failureReason = {});

} // namespace pipewright
