// SPDX-License-Identifier: GPL-3.0-or-later
// One process per device: this one's device is an ordinary host device or a GPU, the others' are reached through a
// mesh, GPUs through NCCL.
#pragma once

#include "executor/cuda/cudabackend.h"
#include "executor/mpi/mesh.h"

namespace pipewright {

/// Throws Error when not all processes show up within `deadline`, which is also how long nothing may move later.
std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline);

/// The same on GPUs: each process takes the one whose number is its own among the processes of its machine.
/// `setup.devices`, its numbering and `setup.transport` are not looked at. The table must outlive the backend. Throws Error too when
/// NCCL is not there, or the machine has fewer GPUs than processes.
std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline,
                                           const PipewrightCudaTable& table, const CudaSetup& setup);

} // namespace pipewright
