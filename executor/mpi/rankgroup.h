// SPDX-License-Identifier: GPL-3.0-or-later
// A NCCL communicator of this process's GPU and those of other processes: the members of a group that hold a stage
// together. A member's collective call is offered to process 0, and the GPU's owner issues it when process 0 has heard
// of all members: in the same order as all other common operations of the GPUs.
#pragma once

#include "executor/mpi/rankpair.h"

#include <memory>
#include <span>

namespace pipewright {

/// `members` are consecutive processes, this one among them; all of them call this at the same point. Throws Error when
/// another process does not come, or NCCL cannot connect them within the deadline.
std::unique_ptr<Communicator> createRankGroup(const RankGpu& own, std::span<const int> members);

} // namespace pipewright
