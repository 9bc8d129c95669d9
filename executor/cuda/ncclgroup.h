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

/// When a member of a group has its calls made: when all members have come to theirs.
class NcclTurn {
public:
    virtual ~NcclTurn() = default;
    /// By the member's thread. Returns when the owner of its GPU has made the calls, of which it throws what they
    /// threw, or when the group has been aborted.
    virtual void take(const std::function<void()>& calls) = 0;
    /// From any thread: nobody waits for the others any more.
    virtual void abort() = 0;
    /// Whether the others are there to leave the group together, which NCCL waits for.
    virtual bool canClose() const { return true; }
};

/// Of a rank that has joined its group and is warmed up; closes it.
std::unique_ptr<Communicator> createNcclMember(const CudaGpu& gpu, void* member, std::unique_ptr<NcclTurn> turn);

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
