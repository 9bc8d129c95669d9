// SPDX-License-Identifier: GPL-3.0-or-later
// GPUs behind the backend interface, through the plugin's table. A pipeline device is a GPU, a slice of its
// multiprocessors, or one of several that share a GPU, each with a stream of its own. A link is a stream of its own
// too: when both sides are posted, the side that posted later issues the copy there, after all that either
// device had issued before its posting, and no host thread waits. A wait blocks the host only until the other side is
// posted; from then on the streams order the work among themselves. Tested without a GPU with the real plugin on
// stand-ins of NVIDIA's libraries (tests/standin).
#pragma once

#include "core/cluster/cluster.h"
#include "executor/cuda/cudaattention.h"
#include "executor/cuda/table.h"
#include "executor/runtime/backend.h"

#include <array>
#include <string_view>
#include <vector>

namespace pipewright {

/// How bytes get from one GPU to another; within a GPU they are always copied.
enum class CudaTransport {
    Automatic, ///< the copy engines between devices, NCCL for collectives where it is there
    Copy,      ///< the copy engines for all
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

/// May it connect GPUs of several processes?
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
    std::string cublasLt{}, cudnn{}, nccl{}, cupti{}; ///< the libraries' files; empty: not there
    CudaAttention attention = CudaAttention::Automatic;
    int firstDevice = 0;                   ///< what errors call the first; the others follow
    bool bfloat16 = false;                 ///< factors of matrix products are rounded to bf16, sums stay fp32
    bool recordKernels = true;             ///< by CUPTI, where it is there; else blocks are timed by events alone
    Nanoseconds deadline = 30'000'000'000; ///< for being connected by NCCL
};

/// From compute capability 8.0 on kernels multiply bf16 as it lies in memory.
inline bool computesWithBf16(const PipewrightCudaDevice& gpu)
{
    return gpu.major >= 8;
}

/// Several pipeline devices of one GPU of which all name multiprocessors run beside each other, each on its own; the
/// others share the whole. The table must outlive the backend. Throws Error: a GPU that is not there, more
/// multiprocessors than there are, NCCL or cuDNN wanted and not found.
std::unique_ptr<Backend> createCudaBackend(const PipewrightCudaTable& table, const CudaSetup& setup);

} // namespace pipewright
