// SPDX-License-Identifier: GPL-3.0-or-later
// One process per device: this process's device is a host device or a GPU; those of other processes are reached through
// a mesh, GPUs through NCCL.
#pragma once

#include "executor/cuda/cudabackend.h"
#include "executor/mpi/mesh.h"

namespace pipewright {

/// Throws Error when not all processes connect within `deadline`. The same limit applies later when nothing makes
/// progress.
std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline);

/// The same on GPUs. `setup.devices` says for every process which GPU of its machine it uses, and how much of it. When
/// empty, a process uses the GPU with its own number among the processes of its machine, or the first GPU where
/// processes see fewer GPUs than there are processes, because each is shown its own. `setup.transport` and the
/// numbering are ignored. The table must outlive the backend. Also throws Error when NCCL or a GPU is missing, or two
/// processes have the same GPU.
std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline,
                                           const PipewrightCudaTable& table, const CudaSetup& setup);

} // namespace pipewright
