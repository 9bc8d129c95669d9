// SPDX-License-Identifier: GPL-3.0-or-later
// Finds this process's rank, the number of processes and the place where they meet in what a launcher (mpirun, srun,
// torchrun) left in the environment. Without a launcher the program starts the processes of a run itself, and leaves
// what torchrun does.
#pragma once

#include "core/base/units.h"

#include <cstdlib>
#include <functional>
#include <string>

namespace pipewright {

struct RankEnvironment {
    bool launched = false; ///< by a launcher; without one this process is the only one
    int rank = 0, size = 1;
    std::string address{}; ///< of rank 0's host
    int port = 0;
};

using EnvironmentLookup = std::function<const char*(const char* name)>; ///< std::getenv, or a test's

/// Rank and size come from Open MPI's or MPICH's own variables, else from RANK and WORLD_SIZE (torchrun), else from
/// SLURM_PROCID and SLURM_NTASKS within a step. The place is MASTER_ADDR and the port after MASTER_PORT (torchrun's own
/// store keeps that port) where they are set. Else Slurm's launching node and a port from its job; under an mpirun
/// whose ranks are all on this machine the loopback address and a port from the job's name. Throws Error when something
/// is missing or no number.
RankEnvironment rankEnvironment(const EnvironmentLookup& lookup = std::getenv);

} // namespace pipewright
