// SPDX-License-Identifier: GPL-3.0-or-later
// GPUs behind the backend interface, through the plugin's table. A pipeline device is a GPU, a slice of its
// multiprocessors, or one of several that share a GPU, each with a stream of its own. A link has a stream of its own
// too: the side that posts later issues the copy there, after all work that either device had issued before its
// posting. A wait blocks the host only until the other side has posted; from then on CUDA events order the streams.
// Tested without a GPU with the real plugin on stand-ins of NVIDIA's libraries (tests/standin).
#pragma once

#include "core/cluster/cluster.h"
#include "executor/cuda/cudaattention.h"
#include "executor/cuda/table.h"
#include "executor/runtime/backend.h"

#include <array>
#include <string_view>
#include <vector>

namespace pipewright {

/// How bytes are moved from one GPU to another; within a GPU they are always copied.
enum class CudaTransport {
    Automatic, ///< copy engines between devices; NCCL, if available, for collectives
    Copy,      ///< copy engines for everything
    Nccl,
};
inline constexpr std::array cudaTransports{CudaTransport::Automatic, CudaTransport::Copy, CudaTransport::Nccl};

constexpr std::string_view nameOf(CudaTransport transport) ///< as in --link; empty for a number that is none
{
    switch (transport) {
    case CudaTransport::Automatic: return "auto";
    case CudaTransport::Copy: return "copy";
    case CudaTransport::Nccl: return "nccl";
    }
    return {};
}
static_assert(nameOf(static_cast<CudaTransport>(cudaTransports.size())).empty(), "cudaTransports lists them all");

/// Whether it can connect GPUs of several processes.
constexpr bool reachesProcesses(CudaTransport transport)
{
    switch (transport) {
    case CudaTransport::Automatic:
    case CudaTransport::Nccl: return true;
    case CudaTransport::Copy: return false;
    }
    return false;
}

/// The inverse of nameOf. Throws Error.
CudaTransport cudaTransportNamed(std::string_view name);

struct CudaSetup {
    std::vector<GpuShare> devices; ///< per pipeline device: where it runs
    CudaTransport transport = CudaTransport::Automatic;
    std::string cublasLt{}, cudnn{}, nccl{}, cupti{}; ///< the libraries' files; empty: not found
    CudaAttention attention = CudaAttention::Automatic;
    int firstDevice = 0;                   ///< number of the first device in error messages; the others follow
    bool bfloat16 = false;                 ///< factors of matrix products are rounded to bf16, sums stay fp32
    bool recordKernels = true;             ///< by CUPTI, if available; else blocks are timed by events alone
    Nanoseconds deadline = 30'000'000'000; ///< for NCCL to connect the GPUs
};

/// From compute capability 8.0 on, kernels multiply stored bf16 values directly.
inline bool computesWithBf16(const PipewrightCudaDevice& gpu)
{
    return gpu.major >= 8;
}

/// Pipeline devices that name a number of multiprocessors run concurrently on slices of their GPU; the others share the
/// whole GPU. The table must outlive the backend. Throws Error for a GPU that does not exist, more multiprocessors than
/// it has, or NCCL or cuDNN requested and not found.
std::unique_ptr<Backend> createCudaBackend(const PipewrightCudaTable& table, const CudaSetup& setup);

} // namespace pipewright
