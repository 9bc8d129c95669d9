// SPDX-License-Identifier: GPL-3.0-or-later
// The calls of NVIDIA's libraries that misuse.cpp makes, each with what it needs: parts of a GPU, a product, ranks of
// NCCL. DO(call, arguments…) prints what a call was refused with, and nothing where it succeeded.
#pragma once

#include "launch.h"
#include "launches.h"
#include "machine.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <functional>
#include <map>
#include <nccl.h>
#include <string>
#include <thread>
#include <vector>

namespace standin {

/// Prints what a call answered unless that is success, so a case that expects nothing shows everything.
inline void said(const char* call, cudaError_t code)
{
    if (code != cudaSuccess)
        std::printf("%s: %s\n", call, cudaGetErrorName(code));
}
inline void said(const char* call, CUresult code)
{
    const char* text = nullptr;
    if (code != CUDA_SUCCESS)
        std::printf("%s: %s\n", call, cuGetErrorString(code, &text) == CUDA_SUCCESS ? text : "unknown error");
}
inline void said(const char* call, ncclResult_t code)
{
    if (code != ncclSuccess)
        std::printf("%s: %s\n", call, ncclGetErrorString(code));
}
inline void said(const char* call, cublasStatus_t code)
{
    if (code != CUBLAS_STATUS_SUCCESS)
        std::printf("%s: %s\n", call, cublasLtGetStatusString(code));
}
inline void said(const char* call, CUptiResult code)
{
    const char* text = nullptr;
    if (code != CUPTI_SUCCESS && cuptiGetResultString(code, &text) == CUPTI_SUCCESS)
        std::printf("%s: %s\n", call, text);
}
#define DO(call, ...) said(#call, call(__VA_ARGS__))

inline cudaStream_t stream()
{
    cudaStream_t made = nullptr;
    DO(cudaStreamCreateWithFlags, &made, cudaStreamNonBlocking);
    return made;
}
inline cudaEvent_t event()
{
    cudaEvent_t made = nullptr;
    DO(cudaEventCreate, &made);
    return made;
}
inline float* memory(std::size_t numbers)
{
    void* made = nullptr;
    DO(cudaMalloc, &made, numbers * sizeof(float));
    return static_cast<float*>(made);
}
inline void launchOn(cudaStream_t on, unsigned threads = 32, std::vector<const void*> pointers = {})
{
    standin::Launch launch{};
    launch.kernel = "nothing";
    launch.place = "misuse.cpp";
    launch.block.x = threads;
    launch.stream = on;
    launch.body = [] {};
    launch.pointers = std::move(pointers);
    pipewrightStandinLaunch(launch);
    DO(cudaGetLastError);
}

/// Ends a capture and destroys the graph.
inline void endCapture(cudaStream_t on)
{
    cudaGraph_t graph = nullptr;
    DO(cudaStreamEndCapture, on, &graph);
    if (graph)
        DO(cudaGraphDestroy, graph);
}
/// Two streams, the second of which takes part in a capture of the first.
struct Forked {
    cudaStream_t one = stream(), two = stream();
    cudaEvent_t here = event(), end = event();
    Forked()
    {
        DO(cudaStreamBeginCapture, one, cudaStreamCaptureModeThreadLocal);
        DO(cudaEventRecord, here, one);
        DO(cudaStreamWaitEvent, two, here, 0);
    }
};

// ---- Parts of a GPU.

struct Split {
    std::array<CUdevResource, 2> groups{};
    CUdevResource rest{};
};
inline Split split(const CUdevResource& whole)
{
    Split made;
    unsigned number = 2;
    DO(cuDevSmResourceSplitByCount, made.groups.data(), &number, &whole, &made.rest, 0, 32);
    return made;
}
inline CUdevResource wholeGpu()
{
    CUdevResource whole{};
    DO(cuDeviceGetDevResource, 0, &whole, CU_DEV_RESOURCE_TYPE_SM);
    return whole;
}
inline CUgreenCtx greenContext(CUdevResource* resources, unsigned number, unsigned flags = CU_GREEN_CTX_DEFAULT_STREAM)
{
    CUdevResourceDesc description = nullptr;
    DO(cuDevResourceGenerateDesc, &description, resources, number);
    CUgreenCtx context = nullptr;
    if (description)
        DO(cuGreenCtxCreate, &context, description, 0, flags);
    return context;
}
inline CUstream streamIn(CUgreenCtx context, unsigned flags = CU_STREAM_NON_BLOCKING)
{
    CUstream made = nullptr;
    DO(cuGreenCtxStreamCreate, &made, context, flags, 0);
    return made;
}
inline void askFor(const char* function, unsigned version)
{
    void* address = nullptr;
    cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
    DO(cudaGetDriverEntryPointByVersion, function, &address, version, cudaEnableDefault, &status);
    if (!address)
        std::printf("%s of %u: %s\n", function, version,
                    status == cudaDriverEntryPointVersionNotSufficent ? "only in newer versions" : "unknown");
}

// ---- Products.

/// A product of two square matrices of 16, chosen for these alignments (bytes).
inline void multiply(const float* a, const float* b, float* result, void* workspace, std::uint32_t alignment = 16)
{
    constexpr std::size_t workspaceBytes = 1024;
    cublasLtHandle_t library = nullptr;
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t layout = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    DO(cublasLtCreate, &library);
    DO(cublasLtMatmulDescCreate, &product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    DO(cublasLtMatrixLayoutCreate, &layout, CUDA_R_32F, 16, 16, 16);
    DO(cublasLtMatmulPreferenceCreate, &preference);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
        DO(cublasLtMatmulPreferenceSetAttribute, preference, what, &value, sizeof value);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspaceBytes});
    for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
        prefer(which, alignment);
    cublasLtMatmulHeuristicResult_t choice{};
    int found = 0;
    DO(cublasLtMatmulAlgoGetHeuristic, library, product, layout, layout, layout, layout, preference, 1, &choice,
       &found);
    const float one = 1, zero = 0;
    cudaStream_t on = stream();
    DO(cublasLtMatmul, library, product, &one, a, layout, b, layout, &zero, result, layout, result, layout,
       &choice.algo, workspace, workspaceBytes, on);
    DO(cudaStreamSynchronize, on);
    DO(cudaStreamDestroy, on);
    DO(cublasLtMatmulPreferenceDestroy, preference);
    DO(cublasLtMatrixLayoutDestroy, layout);
    DO(cublasLtMatmulDescDestroy, product);
    DO(cublasLtDestroy, library);
}

// ---- NCCL.

/// Each rank in a thread of its own, on a GPU of its own.
inline void ranks(int number, const std::function<void(int, ncclComm_t, cudaStream_t, float*)>& each)
{
    ncclUniqueId id{};
    DO(ncclGetUniqueId, &id);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < number; ++rank)
        threads.emplace_back([&, rank] {
            DO(cudaSetDevice, rank);
            ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
            ncclComm_t communicator = nullptr;
            DO(ncclCommInitRankConfig, &communicator, number, id, rank, &config);
            cudaStream_t on = stream();
            float* data = memory(64);
            each(rank, communicator, on, data);
            DO(cudaStreamDestroy, on);
            DO(cudaFree, data);
        });
    for (std::thread& thread : threads)
        thread.join();
}

inline void exchange(int rank, ncclComm_t communicator, cudaStream_t on, float* data, std::size_t sent,
                     std::size_t received)
{
    if (rank == 0)
        DO(ncclSend, data, sent, ncclFloat, 1, communicator, on);
    else
        DO(ncclRecv, data, received, ncclFloat, 0, communicator, on);
    DO(cudaStreamSynchronize, on);
}

/// Runs `meanwhile` while another thread stays in a call with the communicator (PIPEWRIGHT_STANDIN_FAIL=linger:1).
inline void amidACall(const std::function<void(ncclComm_t, cudaStream_t, float*)>& meanwhile)
{
    ranks(1, [&](int, ncclComm_t communicator, cudaStream_t on, float* data) {
        std::thread other([&] { ncclAllReduce(data, data, 8, ncclFloat, ncclSum, communicator, on); });
        while (!standin::failed("linger"))
            std::this_thread::yield();
        meanwhile(communicator, on, data);
        other.join();
    });
}

// ---- CUPTI.

inline void giveNoBuffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most)
{
    *buffer = nullptr;
    *size = *most = 0;
}
inline void takeBuffer(CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {}
inline std::uint64_t clockOfMine()
{
    return 1;
}

} // namespace standin
