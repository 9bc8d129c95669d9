// SPDX-License-Identifier: GPL-3.0-or-later
// Calls that NVIDIA's documentation forbids, one kind to a process: "misuse NAME". What a call was refused with is
// printed; what is undefined the stand-ins complain of themselves, and what is left is in their report. "misuse right"
// does what is allowed, with the same calls. misuse.sh says what has to be found.
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

namespace {

/// Prints what a call answered unless that is success, so a case that expects nothing shows everything.
void said(const char* call, cudaError_t code)
{
    if (code != cudaSuccess)
        std::printf("%s: %s\n", call, cudaGetErrorName(code));
}
void said(const char* call, CUresult code)
{
    const char* text = nullptr;
    if (code != CUDA_SUCCESS)
        std::printf("%s: %s\n", call, cuGetErrorString(code, &text) == CUDA_SUCCESS ? text : "unknown error");
}
void said(const char* call, ncclResult_t code)
{
    if (code != ncclSuccess)
        std::printf("%s: %s\n", call, ncclGetErrorString(code));
}
void said(const char* call, cublasStatus_t code)
{
    if (code != CUBLAS_STATUS_SUCCESS)
        std::printf("%s: %s\n", call, cublasLtGetStatusString(code));
}
void said(const char* call, CUptiResult code)
{
    const char* text = nullptr;
    if (code != CUPTI_SUCCESS && cuptiGetResultString(code, &text) == CUPTI_SUCCESS)
        std::printf("%s: %s\n", call, text);
}
#define DO(call, ...) said(#call, call(__VA_ARGS__))

cudaStream_t stream()
{
    cudaStream_t made = nullptr;
    DO(cudaStreamCreateWithFlags, &made, cudaStreamNonBlocking);
    return made;
}
cudaEvent_t event()
{
    cudaEvent_t made = nullptr;
    DO(cudaEventCreate, &made);
    return made;
}
float* memory(std::size_t numbers)
{
    void* made = nullptr;
    DO(cudaMalloc, &made, numbers * sizeof(float));
    return static_cast<float*>(made);
}
void launchOn(cudaStream_t on, unsigned threads = 32)
{
    standin::Launch launch{};
    launch.kernel = "nothing";
    launch.place = "misuse.cpp";
    launch.block.x = threads;
    launch.stream = on;
    launch.body = [] {};
    pipewrightStandinLaunch(launch);
    DO(cudaGetLastError);
}

// ---- Parts of a GPU.

struct Split {
    std::array<CUdevResource, 2> groups{};
    CUdevResource rest{};
};
Split split(const CUdevResource& whole)
{
    Split made;
    unsigned number = 2;
    DO(cuDevSmResourceSplitByCount, made.groups.data(), &number, &whole, &made.rest, 0, 32);
    return made;
}
CUdevResource wholeGpu()
{
    CUdevResource whole{};
    DO(cuDeviceGetDevResource, 0, &whole, CU_DEV_RESOURCE_TYPE_SM);
    return whole;
}
CUgreenCtx greenContext(CUdevResource* resources, unsigned number, unsigned flags = CU_GREEN_CTX_DEFAULT_STREAM)
{
    CUdevResourceDesc description = nullptr;
    DO(cuDevResourceGenerateDesc, &description, resources, number);
    CUgreenCtx context = nullptr;
    if (description)
        DO(cuGreenCtxCreate, &context, description, 0, flags);
    return context;
}
CUstream streamIn(CUgreenCtx context, unsigned flags = CU_STREAM_NON_BLOCKING)
{
    CUstream made = nullptr;
    DO(cuGreenCtxStreamCreate, &made, context, flags, 0);
    return made;
}
void askFor(const char* function, unsigned version)
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
void multiply(const float* a, const float* b, float* result, void* workspace, std::uint32_t alignment = 16)
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
void ranks(int number, const std::function<void(int, ncclComm_t, cudaStream_t, float*)>& each)
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

void exchange(int rank, ncclComm_t communicator, cudaStream_t on, float* data, std::size_t sent, std::size_t received)
{
    if (rank == 0)
        DO(ncclSend, data, sent, ncclFloat, 1, communicator, on);
    else
        DO(ncclRecv, data, received, ncclFloat, 0, communicator, on);
    DO(cudaStreamSynchronize, on);
}

/// Another thread is in a call with the communicator, which stays in it (PIPEWRIGHT_STANDIN_FAIL=linger:1), meanwhile.
void amidACall(const std::function<void(ncclComm_t, cudaStream_t, float*)>& meanwhile)
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

void giveNoBuffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most)
{
    *buffer = nullptr;
    *size = *most = 0;
}
void takeBuffer(CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {}
std::uint64_t clockOfMine()
{
    return 1;
}

/// What is allowed, with all of the calls above: nobody may complain of it, and nothing is left.
void right()
{
    CUpti_SubscriberHandle subscriber = nullptr;
    DO(
        cuptiSubscribe, &subscriber, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr);
    DO(cuptiActivityRegisterTimestampCallback, clockOfMine);
    DO(cuptiActivityRegisterCallbacks, giveNoBuffer, takeBuffer);
    DO(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_RUNTIME);

    Split parts = split(wholeGpu());
    CUgreenCtx first = greenContext(parts.groups.data(), 2), second = greenContext(&parts.rest, 1);
    for (CUgreenCtx context : {first, second}) {
        CUstream inside = streamIn(context);
        launchOn(reinterpret_cast<cudaStream_t>(inside));
        DO(cudaStreamSynchronize, reinterpret_cast<cudaStream_t>(inside));
        DO(cudaStreamDestroy, reinterpret_cast<cudaStream_t>(inside));
        DO(cuGreenCtxDestroy, context);
    }
    askFor("cuGreenCtxStreamCreate", 12050);

    cudaStream_t one = stream();
    cudaEvent_t before = event(), after = event();
    DO(cudaStreamBeginCapture, one, cudaStreamCaptureModeThreadLocal);
    launchOn(one);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    DO(cudaStreamEndCapture, one, &graph);
    DO(cudaGraphInstantiate, &made, graph, 0);
    DO(cudaEventRecord, before, one);
    DO(cudaGraphLaunch, made, one);
    DO(cudaEventRecord, after, one);
    DO(cudaStreamSynchronize, one);
    float took = 0;
    DO(cudaEventElapsedTime, &took, before, after);
    DO(cudaGraphExecDestroy, made);
    DO(cudaGraphDestroy, graph);
    float *data = memory(2048), *place = memory(256), host[4] = {};
    DO(cudaMemsetAsync, data, 0, 2048 * sizeof(float), one);
    DO(cudaMemcpyAsync, data, host, sizeof host, cudaMemcpyHostToDevice, one);
    DO(cudaStreamSynchronize, one);
    multiply(data, data + 256, data + 512, place, 256);
    DO(cudaStreamDestroy, one);
    DO(cudaEventDestroy, before);
    DO(cudaEventDestroy, after);
    DO(cudaFree, data);
    DO(cudaFree, place);

    ranks(2, [](int rank, ncclComm_t communicator, cudaStream_t on, float* values) {
        exchange(rank, communicator, on, values, 16, 16);
        DO(ncclGroupStart);
        DO(ncclAllReduce, values, values, 16, ncclFloat, ncclSum, communicator, on);
        DO(ncclGroupEnd);
        DO(cudaStreamSynchronize, on);
        DO(ncclCommDestroy, communicator);
    });
    DO(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_RUNTIME);
    DO(cuptiUnsubscribe, subscriber);
}

const std::map<std::string, std::function<void()>> cases{
    {"right", right},
    {"splitOfARemainder", [] { split(split(wholeGpu()).rest); }},
    {"splitOfAGroup", [] { split(split(wholeGpu()).groups[0]); }},
    {"groupsOfTwoSplits",
     [] {
         CUdevResource two[] = {split(wholeGpu()).groups[0], split(wholeGpu()).groups[1]};
         greenContext(two, 2);
     }},
    {"oneGroupTwice",
     [] {
         const Split parts = split(wholeGpu());
         CUdevResource two[] = {parts.groups[0], parts.groups[0]};
         greenContext(two, 2);
     }},
    {"greenContextBeforeItsStreams",
     [] {
         Split parts = split(wholeGpu());
         CUgreenCtx context = greenContext(parts.groups.data(), 1);
         streamIn(context);
         DO(cuGreenCtxDestroy, context);
     }},
    {"greenContextTwice",
     [] {
         Split parts = split(wholeGpu());
         CUgreenCtx context = greenContext(parts.groups.data(), 1);
         DO(cuGreenCtxDestroy, context);
         DO(cuGreenCtxDestroy, context);
     }},
    {"greenContextWithoutItsFlag",
     [] {
         Split parts = split(wholeGpu());
         greenContext(parts.groups.data(), 1, 0);
     }},
    {"blockingGreenStream",
     [] {
         Split parts = split(wholeGpu());
         streamIn(greenContext(parts.groups.data(), 1), 0);
     }},
    {"entryPointOfAnOlderVersion", [] { askFor("cuGreenCtxStreamCreate", 12040); }},
    {"entryPointOfANewerDriver", [] { askFor("cuGreenCtxStreamCreate", 99000); }},

    {"launchOnAnotherGpu",
     [] {
         cudaStream_t here = stream();
         DO(cudaSetDevice, 1);
         launchOn(here);
     }},
    {"blockTooLarge", [] { launchOn(stream(), 2048); }},
    {"streamTwice",
     [] {
         cudaStream_t gone = stream();
         DO(cudaStreamDestroy, gone);
         DO(cudaStreamDestroy, gone);
     }},
    {"streamThatBlocks",
     [] {
         cudaStream_t made = nullptr;
         DO(cudaStreamCreateWithFlags, &made, cudaStreamDefault);
     }},
    {"streamLeaked", [] { stream(); }},
    {"eventLeaked", [] { event(); }},
    {"memoryLeaked", [] { memory(16); }},
    {"memoryTwice",
     [] {
         float* gone = memory(16);
         DO(cudaFree, gone);
         DO(cudaFree, gone);
     }},
    {"captureEndedByAnotherThread",
     [] {
         cudaStream_t one = stream();
         DO(cudaStreamBeginCapture, one, cudaStreamCaptureModeThreadLocal);
         std::thread([one] {
             cudaGraph_t graph = nullptr;
             DO(cudaStreamEndCapture, one, &graph);
         }).join();
     }},
    {"legacyStreamDuringACapture",
     [] {
         float* data = memory(16);
         cudaStream_t one = stream();
         DO(cudaStreamBeginCapture, one, cudaStreamCaptureModeThreadLocal);
         DO(cudaMemset, data, 0, 64);
         cudaGraph_t graph = nullptr;
         DO(cudaStreamEndCapture, one, &graph);
     }},
    {"questionDuringACapture",
     [] {
         cudaStream_t one = stream();
         DO(cudaStreamBeginCapture, one, cudaStreamCaptureModeThreadLocal);
         DO(cudaStreamQuery, one);
     }},
    {"captureWaitsForOthers",
     [] {
         cudaStream_t one = stream();
         cudaEvent_t outside = event();
         DO(cudaEventRecord, outside, one);
         DO(cudaStreamBeginCapture, one, cudaStreamCaptureModeThreadLocal);
         DO(cudaStreamWaitEvent, one, outside, 0);
     }},
    {"eventNeverRecorded",
     [] {
         float took = 0;
         DO(cudaEventElapsedTime, &took, event(), event());
     }},
    {"eventOfAnotherGpu",
     [] {
         cudaEvent_t here = event();
         DO(cudaSetDevice, 1);
         DO(cudaEventRecord, here, stream());
     }},
    {"copyAgainstItsDirection",
     [] {
         float host[4] = {};
         DO(cudaMemcpyAsync, host, memory(4), sizeof host, cudaMemcpyHostToDevice, stream());
     }},
    {"copyBeyondItsAllocation",
     [] {
         static float host[1024];
         DO(cudaMemcpyAsync, memory(64), host, sizeof host, cudaMemcpyHostToDevice, stream());
     }},
    {"copyOfAnotherGpu", [] { DO(cudaMemcpyPeerAsync, memory(4), 1, memory(4), 0, 16, stream()); }},

    {"misalignedProduct",
     [] {
         float* data = memory(1024);
         multiply(data + 1, data + 256, data + 512, memory(256));
     }},
    {"productOfAnotherGpu",
     [] {
         float* there = memory(1024);
         DO(cudaSetDevice, 1);
         multiply(there, there, there, memory(256));
     }},
    {"workspaceOfAnotherGpu",
     [] {
         float* there = memory(256);
         DO(cudaSetDevice, 1);
         float* data = memory(1024);
         multiply(data, data + 256, data + 512, there);
     }},
    {"productTooSmallAWorkspace", [] { multiply(memory(256), memory(256), memory(256), memory(16)); }},

    {"unequalSizes",
     [] {
         ranks(2, [](int rank, ncclComm_t communicator, cudaStream_t on, float* data) {
             exchange(rank, communicator, on, data, 16, 8);
         });
     }},
    {"collectivesOfUnequalSizes",
     [] {
         ranks(2, [](int rank, ncclComm_t communicator, cudaStream_t on, float* data) {
             DO(ncclAllReduce, data, data, rank == 0 ? 16 : 8, ncclFloat, ncclSum, communicator, on);
             DO(cudaStreamSynchronize, on);
         });
     }},
    {"abortAmidACall",
     [] { amidACall([](ncclComm_t communicator, cudaStream_t, float*) { DO(ncclCommAbort, communicator); }); }},
    {"twoThreadsInACommunicator",
     [] {
         amidACall([](ncclComm_t communicator, cudaStream_t on, float* data) {
             DO(ncclAllReduce, data, data, 8, ncclFloat, ncclSum, communicator, on);
         });
     }},
    {"communicatorTwice",
     [] {
         ranks(1, [](int, ncclComm_t communicator, cudaStream_t, float*) {
             DO(ncclCommDestroy, communicator);
             DO(ncclCommDestroy, communicator);
         });
     }},
    {"communicatorThatIsGone",
     [] {
         ranks(1, [](int, ncclComm_t communicator, cudaStream_t on, float* data) {
             DO(ncclCommDestroy, communicator);
             DO(ncclSend, data, 8, ncclFloat, 0, communicator, on);
         });
     }},
    {"communicatorLeaked", [] { ranks(1, [](int, ncclComm_t, cudaStream_t, float*) {}); }},
    {"groupThatDidNotBegin", [] { DO(ncclGroupEnd); }},
    {"streamOfAnotherGpuInNccl",
     [] {
         cudaStream_t here = stream(); // of GPU 0
         ranks(2, [here](int rank, ncclComm_t communicator, cudaStream_t, float* data) {
             if (rank == 1)
                 DO(ncclSend, data, 8, ncclFloat, 0, communicator, here);
         });
     }},

    {"recorderBeforeItsBuffers", [] { DO(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_RUNTIME); }},
    {"clockAfterTheRecorder",
     [] {
         DO(cuptiActivityRegisterCallbacks, giveNoBuffer, takeBuffer);
         DO(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_RUNTIME);
         DO(cuptiActivityRegisterTimestampCallback, clockOfMine);
     }},
    {"recorderTwice",
     [] {
         CUpti_SubscriberHandle subscriber = nullptr;
         const auto ignore = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
         DO(cuptiSubscribe, &subscriber, ignore, nullptr);
         DO(cuptiSubscribe, &subscriber, ignore, nullptr);
     }},
    {"labelThatWasNotBegun",
     [] {
         std::uint64_t last = 0;
         DO(cuptiActivityPopExternalCorrelationId, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
     }},
};

} // namespace

int main(int count, char** arguments)
{
    const auto found = count == 2 ? cases.find(arguments[1]) : cases.end();
    if (found == cases.end()) {
        for (const auto& each : cases)
            std::puts(each.first.c_str());
        return 1;
    }
    DO(cuInit, 0);
    DO(cudaSetDevice, 0);
    found->second();
    std::fflush(nullptr);
    std::quick_exit(0); // as the program ends: streams may still have work
}
