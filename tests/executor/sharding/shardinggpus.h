// SPDX-License-Identifier: GPL-3.0-or-later
// Pretended GPUs for the members of a group.
#pragma once

#include "executor/cuda/cudabackend.h"
#include "executor/cuda/pretendedgpu.h"

#include <memory>

namespace pipewright::test {

/// One GPU for each device with NCCL, else two for all.
inline std::unique_ptr<Backend> pretendedGpus(int devices, bool nccl,
                                              const PipewrightCudaTable* table = &pretended::table())
{
    CudaSetup setup;
    for (int d = 0; d < devices; ++d)
        setup.devices.push_back({nccl ? d : d % 2, 0});
    setup.transport = nccl ? CudaTransport::Nccl : CudaTransport::Copy;
    setup.nccl = "libnccl.so.2";
    return createCudaBackend(*table, setup);
}

} // namespace pipewright::test
