// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of designs on pretended GPUs.
#pragma once

#include "executor/cuda/cudabackend.h"
#include "executor/cuda/pretendedgpu.h"
#include "executor/run/run.h"

namespace pretended {

using namespace pipewright;

inline CudaSetup setupFor(int devices)
{
    CudaSetup setup;
    for (int d = 0; d < devices; ++d)
        setup.devices.push_back({d % pretended::gpus, 0});
    return setup;
}

inline RunOptions onPretendedGpus(CudaTransport transport = CudaTransport::Automatic)
{
    RunOptions options;
    options.backend = "cuda";
    options.steps = 3;
    options.createBackend = [transport](int devices) {
        CudaSetup setup = setupFor(devices);
        setup.transport = transport;
        setup.nccl = "libnccl.so.2";
        setup.cupti = "libcupti.so.13";
        return createCudaBackend(pretended::table(), setup);
    };
    return options;
}

} // namespace pretended
