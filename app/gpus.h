// SPDX-License-Identifier: GPL-3.0-or-later
// The part of `run --backend cuda` that is about this machine: its GPUs, the libraries, and which device runs where.
#pragma once

#include "core/base/diagnostic.h"
#include "core/cluster/cluster.h"
#include "executor/mpi/mesh.h"
#include "executor/runtime/backend.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pipewright::app {

struct GpuChoice {
    std::vector<GpuShare> shares;       ///< the design's; empty: spread over all GPUs
    std::string link;                   ///< "auto", "copy", "nccl"
    std::vector<std::string> libraries; ///< folders
    bool bfloat16 = false;
    Nanoseconds deadline = 30'000'000'000; ///< for GPUs to be connected
};

/// For a design of that many devices. Throws Error, with what is missing, when this machine cannot run designs on GPUs,
/// or has not those that the design names; what is doubtful is added to `notes`. Nothing is started yet.
std::function<std::unique_ptr<Backend>(int devices)> cudaBackend(const GpuChoice& choice, int devices,
                                                                 Diagnostics& notes);

/// The same for one of several processes, which reach each other by the mesh.
std::function<std::unique_ptr<Backend>(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)>
cudaRank(const GpuChoice& choice);

} // namespace pipewright::app
