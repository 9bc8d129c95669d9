// SPDX-License-Identifier: GPL-3.0-or-later
// One process per device: this one's device is an ordinary host device, the others' are reached through a mesh.
#pragma once

#include "executor/mpi/mesh.h"

namespace pipewright {

/// Throws Error when not all processes show up within `deadline`, which is also how long nothing may move later.
std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline);

} // namespace pipewright
