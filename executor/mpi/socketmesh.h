// SPDX-License-Identifier: GPL-3.0-or-later
// A mesh of stream sockets, one between each two processes: for launchers that start processes but bring no
// MPI (torchrun, srun without PMI), and in tests within one process. The end of a process shows at once, as
// the end of its sockets.
#pragma once

#include "executor/mpi/mesh.h"

#include <string>

namespace pipewright {

/// `sockets[r]` is connected to rank r; -1 at the own place. Takes them over.
std::unique_ptr<Mesh> createSocketMesh(int rank, std::vector<int> sockets);

/// Rank 0 listens on `port` of `address`, all others connect to it and learn there where the rest is. Who does not know
/// `secret` is not let in (ranksecret.h). Throws Error when they have not all come within `deadline`.
std::unique_ptr<Mesh> connectSocketMesh(int rank, int size, const std::string& address, int port,
                                        const std::string& secret, Nanoseconds deadline);

/// The meshes of `size` ranks that are all in this process.
std::vector<std::unique_ptr<Mesh>> createLocalMeshes(int size);

} // namespace pipewright
