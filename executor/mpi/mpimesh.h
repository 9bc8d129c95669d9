// SPDX-License-Identifier: GPL-3.0-or-later
// A mesh over MPI: headers under one tag, payloads under another, both in MPI's own order. It is a library of its own,
// linked by the program only, and is built only where MPI was found.
#pragma once

#include "executor/mpi/mesh.h"

#include <atomic>
#include <functional>
#include <string>

namespace pipewright {

/// Initialises MPI; once per process, for all of its life. Throws Error when MPI does not offer the needed thread
/// support. MPI_Init waits for processes that may never come and cannot be interrupted: when it takes longer than
/// `deadline`, or when `cancel` becomes true meanwhile, `giveUp` is called with the reason on another thread and must
/// end the process.
std::unique_ptr<Mesh> createMpiMesh(Nanoseconds deadline, const std::atomic<bool>* cancel,
                                    const std::function<void(const std::string& why)>& giveUp);

std::string mpiVersion(); ///< "Open MPI v4.1.4"; of the library that was loaded

} // namespace pipewright
