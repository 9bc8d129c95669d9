// SPDX-License-Identifier: GPL-3.0-or-later
// Stand-in GPUs for the members of a group.
#pragma once

#include "executor/cuda/standingpus.h"

#include <memory>

namespace pipewright::test {

/// One GPU for each device with NCCL, else two for all.
inline std::unique_ptr<Backend> memberGpus(int devices, bool nccl, const PipewrightCudaTable& table = standInTable())
{
    CudaSetup setup = standInSetup(devices, nccl ? 4 : 2);
    setup.transport = nccl ? CudaTransport::Nccl : CudaTransport::Copy;
    return createCudaBackend(table, setup);
}

} // namespace pipewright::test
