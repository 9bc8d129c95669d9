// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gpus.h"

#include "core/base/diagnostic.h"
#include "executor/cuda/cudabackend.h"
#include "executor/cuda/gpushares.h"
#include "executor/cuda/loader.h"
#include "executor/mpi/rankbackend.h"

#include <utility>

namespace pipewright::app {

namespace {

CudaSetup setupFor(const GpuChoice& choice, const CudaStatus& status)
{
    if (!status.table)
        throw Error("--backend", "no GPU can be used: " + status.reason,
                    "use --backend host; pipewright devices says what can run here");
    CudaSetup setup;
    setup.bfloat16 = choice.bfloat16;
    setup.recordKernels = choice.recordKernels;
    setup.deadline = choice.deadline;
    setup.transport = cudaTransportNamed(choice.link);
    setup.attention = cudaAttentionNamed(choice.attention);
    for (const CudaLibrary& library : status.libraries)
        (library.name == "cuBLASLt" ? setup.cublasLt
         : library.name == "cuDNN"  ? setup.cudnn
         : library.name == "NCCL"   ? setup.nccl
                                    : setup.cupti) = library.path;
    return setup;
}

/// Notes missing libraries without which a run is possible but slower.
void noteMissing(const CudaStatus& status, Diagnostics& notes)
{
    for (const CudaLibrary& library : status.libraries)
        if (library.name == "cuBLASLt" && library.path.empty())
            notes.push_back({Severity::Warning, "--cuda-libraries",
                             "cuBLASLt was not found (" + library.file
                                 + "): matrix products use a kernel of this program's own, which is many times slower",
                             "install it, or name its folder; pipewright devices shows what is found"});
}

CudaStatus probe(const GpuChoice& choice)
{
    CudaSearch search;
    search.folders = choice.libraries;
    return probeCuda(search);
}

} // namespace

std::function<std::unique_ptr<Backend>(int devices)> cudaBackend(const GpuChoice& choice, int devices,
                                                                 Diagnostics& notes)
{
    const CudaStatus status = probe(choice);
    CudaSetup setup = setupFor(choice, status);
    setup.devices = gpuSharesFor(choice.shares, devices, status.devices);
    noteMissing(status, notes);
    const Diagnostics doubts = whyNotPlaced(choice.shares, devices, status.devices);
    notes.insert(notes.end(), doubts.begin(), doubts.end());
    return [setup = std::move(setup), table = status.table](int) { return createCudaBackend(*table, setup); };
}

RankCreator cudaRank(const GpuChoice& choice, Diagnostics& notes)
{
    const CudaStatus status = probe(choice);
    CudaSetup own = setupFor(choice, status);
    noteMissing(status, notes);
    own.devices = choice.shares;
    return [setup = std::move(own), table = status.table](std::unique_ptr<Mesh> mesh, Nanoseconds deadline) {
        return createRankBackend(std::move(mesh), deadline, *table, setup);
    };
}

} // namespace pipewright::app
