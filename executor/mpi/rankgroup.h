// SPDX-License-Identifier: GPL-3.0-or-later
// This process's GPU in a communicator of NCCL with those of several other processes: the members of a group that hold
// a stage together. What a member asks for is offered, and issued by the GPU's owner when process 0 has heard of all
// members: in the same order as all else that the GPUs have in common.
#pragma once

#include "executor/mpi/rankpair.h"

#include <memory>
#include <span>

namespace pipewright {

/// `members` are processes, one behind the other, of which the own one is one; all of them call it at the same place.
/// Throws Error when another does not come, or NCCL cannot connect them within the deadline.
std::unique_ptr<Communicator> createRankGroup(const RankGpu& own, std::span<const int> members);

} // namespace pipewright
