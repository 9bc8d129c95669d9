// SPDX-License-Identifier: GPL-3.0-or-later
// Ranks that are all in this process, for tests: each with a mesh of its own, joined by pairs of sockets.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/mpi/socketmesh.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace pipewright::test {

inline std::vector<std::unique_ptr<Mesh>> createLocalMeshes(int size)
{
    std::vector<std::vector<int>> sockets(static_cast<std::size_t>(size),
                                          std::vector<int>(static_cast<std::size_t>(size), -1));
    for (std::size_t a = 0; a < sockets.size(); ++a)
        for (std::size_t b = a + 1; b < sockets.size(); ++b) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
                throw Error("sockets", std::strerror(errno), "raise the number of open files (ulimit -n)");
            sockets[a][b] = pair[0];
            sockets[b][a] = pair[1];
        }
    std::vector<std::unique_ptr<Mesh>> meshes;
    for (std::size_t r = 0; r < sockets.size(); ++r)
        meshes.push_back(createSocketMesh(static_cast<int>(r), std::move(sockets[r])));
    return meshes;
}

} // namespace pipewright::test
