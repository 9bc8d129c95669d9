// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gpus.h"

#include "core/base/diagnostic.h"
#include "executor/cuda/cudabackend.h"
#include "executor/cuda/loader.h"

namespace pipewright::app {

std::function<std::unique_ptr<Backend>(int devices)> cudaBackend(const GpuChoice& choice)
{
    CudaSearch search;
    search.folders = choice.libraries;
    const CudaStatus status = probeCuda(search);
    if (!status.table)
        throw Error("--backend", "no GPU can be used: " + status.reason,
                    "use --backend host; pipewright devices says what can run here");
    CudaSetup setup;
    setup.bfloat16 = choice.bfloat16;
    setup.transport = choice.link == "nccl"   ? CudaTransport::Nccl
                      : choice.link == "copy" ? CudaTransport::Copy
                                              : CudaTransport::Automatic;
    for (const CudaLibrary& library : status.libraries)
        (library.name == "cuBLASLt" ? setup.cublasLt
         : library.name == "NCCL"   ? setup.nccl
                                    : setup.cupti) = library.path;
    return [setup, status, shares = choice.shares](int devices) mutable {
        setup.devices = gpuSharesFor(shares, devices, status.devices);
        return createCudaBackend(*status.table, setup);
    };
}

} // namespace pipewright::app
