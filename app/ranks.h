// SPDX-License-Identifier: GPL-3.0-or-later
// The part of `run --backend mpi` that is about processes: which one this is, and starting them.
#pragma once

#include "executor/mpi/launch.h"
#include "executor/mpi/mesh.h"
#include "executor/runtime/backend.h"

#include <functional>
#include <memory>
#include <string>

namespace pipewright::app {

RankEnvironment ownRank();

/// Makes this process's part, of the mesh that connects it with the others.
using RankCreator = std::function<std::unique_ptr<Backend>(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)>;

/// What makes this process's part of the backend. Started plainly, the program starts mpirun with `devices` of
/// itself and ends as rank 0 does; this does not return. Throws Error when there is no MPI to do that with.
std::function<std::unique_ptr<Backend>(int devices)>
rankBackendOrLaunch(const RankEnvironment& ranks, int devices, Nanoseconds deadline, const RankCreator& create);

/// For the process that started the ranks; does nothing anywhere but on rank 0.
void leaveVerdict(int exitCode);

/// Why this machine cannot run one process per device, or empty.
std::string whyNoRanks();
std::string ranksDescription(); ///< when it can: "Open MPI v4.1.4, started with /usr/bin/mpirun"

} // namespace pipewright::app
