// SPDX-License-Identifier: GPL-3.0-or-later
// Processes of `run --backend mpi`: starting them, and this process's rank.
#pragma once

#include "executor/mpi/launch.h"
#include "executor/mpi/mesh.h"
#include "executor/runtime/backend.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace pipewright::app {

RankEnvironment ownRank();

/// Makes this process's part of the backend from the mesh that connects it with the others.
using RankCreator = std::function<std::unique_ptr<Backend>(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)>;

/// A factory of this process's part of the backend. Outside mpirun it starts mpirun with `devices` processes, exits
/// with rank 0's code and does not return. Throws Error without MPI.
std::function<std::unique_ptr<Backend>(int devices)>
rankBackendOrLaunch(const RankEnvironment& ranks, int devices, Nanoseconds deadline, const RankCreator& create);

/// Shows the process that started the ranks, for as long as this one lives, that there is a rank. Without one it ends
/// the run after the deadline. At a rank's beginning.
void holdVerdict();

/// Passes the exit code to the process that started the ranks. It comes from rank 0, or from any rank that knows that
/// no other will send one. The first one counts.
enum class FromRank : std::uint8_t { First, Any };
void leaveVerdict(int exitCode, FromRank from = FromRank::First);

/// Why this machine cannot run one process per device, or empty.
std::string whyNoRanks();
std::string ranksDescription(); ///< if it can: "Open MPI v4.1.4, started with /usr/bin/mpirun"

} // namespace pipewright::app
