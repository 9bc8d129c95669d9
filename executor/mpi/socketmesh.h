// SPDX-License-Identifier: GPL-3.0-or-later
// A mesh of stream sockets, one between each two processes. When a process ends, its sockets close, so the others
// notice at once.
#pragma once

#include "executor/mpi/mesh.h"

#include <string>

namespace pipewright {

/// `sockets[r]` is connected to rank r; -1 at this rank's own index. Takes ownership of them.
std::unique_ptr<Mesh> createSocketMesh(int rank, std::vector<int> sockets);

/// Rank 0 listens on `port` of `address`; all others connect to it and learn the addresses of the rest. A process
/// that does not know the `secret` is refused (rankproof.h). Throws Error when not all have connected within
/// `deadline`.
std::unique_ptr<Mesh> connectSocketMesh(int rank, int size, const std::string& address, int port,
                                        const std::string& secret, Nanoseconds deadline);

} // namespace pipewright
