// SPDX-License-Identifier: GPL-3.0-or-later
// Processes of `run --backend mpi`, one per device: starting them on this machine, and joining the others as one of
// them.
#pragma once

#include "executor/mpi/launch.h"
#include "executor/mpi/mesh.h"
#include "executor/runtime/backend.h"

#include <functional>
#include <memory>

namespace pipewright::app {

RankEnvironment ownRank();

/// Starts this command once per device on this machine and waits for the processes. They meet on a loopback address
/// with a secret of their own. Forwards SIGINT and SIGTERM; what rank 0 prints is the answer. One that
/// stands still is ended ten seconds and a deadline after rank 0, or after another that failed. Returns its exit code,
/// or that of bad input when it has none. Throws Error when the processes cannot be started.
int runOnLocalRanks(int devices, Nanoseconds deadline);

/// Makes this process's part of the backend from the mesh that connects it with the others.
using RankCreator = std::function<std::unique_ptr<Backend>(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)>;

/// A factory of this process's part of the backend.
std::function<std::unique_ptr<Backend>(int devices)> rankBackend(const RankEnvironment& ranks, Nanoseconds deadline,
                                                                 const RankCreator& create);

} // namespace pipewright::app
