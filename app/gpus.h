// SPDX-License-Identifier: GPL-3.0-or-later
// Machine-specific parts of `run --backend cuda`: GPUs, libraries, and the mapping of devices.
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
    std::string link = "auto";          ///< or "copy", "nccl"
    std::vector<std::string> libraries; ///< folders
    bool bfloat16 = false, recordKernels = true;
    Nanoseconds deadline = 30'000'000'000; ///< for connecting the GPUs
    std::string attention = "auto";        ///< or "own", "cudnn"
};

/// For a design of that many devices. Throws Error naming what is missing to run on GPUs, or on the GPUs that the
/// design names; adds warnings to `notes`. Does not start anything yet.
std::function<std::unique_ptr<Backend>(int devices)> cudaBackend(const GpuChoice& choice, int devices,
                                                                 Diagnostics& notes);

/// Makes this process's part of the backend from the mesh that connects it with the others.
using RankCreator = std::function<std::unique_ptr<Backend>(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)>;

/// The same for one of several processes.
RankCreator cudaRank(const GpuChoice& choice, Diagnostics& notes);

} // namespace pipewright::app
