// SPDX-License-Identifier: GPL-3.0-or-later
// Finds this process's rank and the number of processes in what the launcher (mpirun, srun, torchrun) left in the
// environment. Without a launcher the program starts its own processes with mpirun.
#pragma once

#include "core/base/units.h"

#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct RankEnvironment {
    enum class Launcher {
        None,
        Mpi,     ///< MPI_Init knows the size
        Sockets, ///< rank, size and the place to meet are given below
    };
    Launcher launcher = Launcher::None;
    int rank = 0, size = 1;
    std::string address{}; ///< of rank 0's host
    int port = 0;
};

using EnvironmentLookup = std::function<const char*(const char* name)>; ///< std::getenv, or a test's

/// Open MPI's, MPICH's and PMIx's own variables come first; then RANK and WORLD_SIZE with MASTER_ADDR and
/// MASTER_PORT (torchrun, whose own store keeps that port: the ranks meet on the next); then SLURM_PROCID and
/// SLURM_NTASKS. Throws Error when they are incomplete.
RankEnvironment rankEnvironment(const EnvironmentLookup& lookup);

/// The arguments that start `ranks` processes of this command line; `program` is mpirun's path. Open MPI has to be told
/// explicitly that it may run as root.
std::vector<std::string> launchCommand(const std::string& program, int ranks, const std::vector<std::string>& command,
                                       bool asRoot);

/// mpirun or mpiexec in `path` (like PATH); empty when there is none.
std::string findLauncher(const std::string& path);

} // namespace pipewright
