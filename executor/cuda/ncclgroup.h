// SPDX-License-Identifier: GPL-3.0-or-later
// Groups of GPUs that NCCL connects: one communicator for all of them, made and joined by the calling thread. Each
// member is then used by the thread of its device. Its calls are issued by the owners of the GPUs when all members have
// made theirs, and are in the same order relative to all other NCCL calls on each GPU.
#pragma once

#include "executor/cuda/nccllink.h"
#include "executor/runtime/collectives.h"

#include <functional>
#include <span>
#include <string>

namespace pipewright {

/// Decides when a member's calls are made: when all members of the group have reached theirs.
class NcclTurn {
public:
    virtual ~NcclTurn() = default;
    /// Called by the member's thread. Returns when the owner of its GPU has made the calls, or when the group has been
    /// aborted. Rethrows an exception of the calls.
    virtual void take(const std::function<void()>& calls) = 0;
    /// From any thread: members no longer wait for each other.
    virtual void abort() = 0;
    /// Whether all members can leave the group together, as NCCL requires for closing.
    virtual bool canClose() const { return true; }
};

/// The communicator of a rank that has joined its group and is warmed up. Closes it on destruction.
std::unique_ptr<Communicator> createNcclMember(const CudaGpu& gpu, void* member, std::unique_ptr<NcclTurn> turn);

/// What a group of ranks does.
enum class NcclUse { AllCollectives, AllReduce };

/// Connects a new group, warms it up and returns the GPUs' ranks. `multiprocessors`: most for an operation, 0: NCCL
/// decides. Throws Error, after which the calling thread may still use NCCL.
std::vector<void*> joinGroup(std::span<const CudaGpu> gpus, NcclUse use, int multiprocessors, Nanoseconds deadline);

/// Requires that NCCL is open, no GPU occurs twice, and the GPUs' owners outlive the members. A call returns when all
/// members have made it and this member's is issued, before it is done. Throws Error when they cannot be connected
/// within the deadline.
std::vector<std::unique_ptr<Communicator>> joinNccl(std::span<const CudaGpu> gpus,
                                                    const std::vector<NcclOwner*>& owners, Nanoseconds deadline);

/// Backend::giveUp() where NCCL is open: as one group of NCCL, so that all communicators end what is in flight before
/// the first of them is freed, which waits for the GPU. Freeing one also waits for the graphs that hold calls of it.
void giveUpTogether(const PipewrightCudaTable& table, std::span<Abortable* const> all);

/// Waits until all ranks of the members' group have joined and returns empty; or returns why not: NCCL's message, that
/// of `failureReason`, or `late` when the deadline has passed.
std::string whyNotJoined(const PipewrightCudaTable& table, std::span<void* const> members, Nanoseconds deadline,
                         const std::string& late, const std::function<std::string()>& failureReason = {});

} // namespace pipewright
