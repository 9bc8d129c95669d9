// SPDX-License-Identifier: GPL-3.0-or-later
// One process per device: this one's device is an ordinary host device or a GPU, the others' are reached through a
// mesh, GPUs through NCCL.
#pragma once

#include "executor/cuda/cudabackend.h"
#include "executor/mpi/mesh.h"

namespace pipewright {

/// Throws Error when not all processes show up within `deadline`, which is also how long nothing may move later.
std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline);

/// The same on GPUs. `setup.devices` says for every process which GPU of its machine it takes, and how much of it; when
/// empty, it is the one whose number is the process's own among those of its machine, or the first where the processes
/// see fewer GPUs than they are, each its own. `setup.transport` and the numbering are not looked at. The table must
/// outlive the backend. Throws Error too when NCCL is not there, a GPU is not there, or two processes have the same.
std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline,
                                           const PipewrightCudaTable& table, const CudaSetup& setup);

} // namespace pipewright
