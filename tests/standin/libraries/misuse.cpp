// SPDX-License-Identifier: GPL-3.0-or-later
// Calls that NVIDIA's documentation forbids, one kind per process: "misuse NAME". Errors of refused calls are printed;
// the stand-ins report undefined behaviour and resources that are left. "misuse right" makes allowed use of the same
// calls. misuse.sh has the expected findings.
#include "misusecalls.h"

#include "launches.h"

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

using namespace standin;

namespace {

/// A graph of two streams, each of which copies the result of the other.
void twoStreamsInOneCapture()
{
    std::array<cudaStream_t, 2> streams{stream(), stream()};
    std::array<cudaEvent_t, 2> ends{event(), event()};
    constexpr int hops = 8;
    float* data = memory(hops + 1);
    DO(cudaStreamBeginCapture, streams[0], cudaStreamCaptureModeThreadLocal);
    DO(cudaMemsetAsync, data, 1, sizeof *data, streams[0]);
    for (int hop = 0; hop < hops; ++hop) {
        const auto from = static_cast<std::size_t>(hop % 2);
        DO(cudaEventRecord, ends[from], streams[from]);
        DO(cudaStreamWaitEvent, streams[1 - from], ends[from], 0);
        DO(cudaMemcpyAsync, data + hop + 1, data + hop, sizeof *data, cudaMemcpyDeviceToDevice, streams[1 - from]);
    }
    static_assert(hops % 2 == 0); // the last hop is on the origin stream
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    DO(cudaStreamEndCapture, streams[0], &graph);
    DO(cudaGraphInstantiate, &made, graph, 0);
    for (int launch = 0; launch < 2; ++launch) {
        DO(cudaMemsetAsync, data, 0, (hops + 1) * sizeof *data, streams[0]);
        DO(cudaGraphLaunch, made, streams[0]);
        std::uint32_t last = 0;
        DO(cudaMemcpyAsync, &last, data + hops, sizeof last, cudaMemcpyDeviceToHost, streams[0]);
        DO(cudaStreamSynchronize, streams[0]);
        if (last != 0x01010101)
            std::printf("the streams of a graph were out of order: %08x\n", last);
    }
    // Outside of a capture again.
    DO(cudaMemsetAsync, data, 0, sizeof *data, streams[1]);
    DO(cudaStreamSynchronize, streams[1]);
    DO(cudaGraphExecDestroy, made);
    DO(cudaGraphDestroy, graph);
    for (const std::size_t each : {0, 1}) {
        DO(cudaStreamDestroy, streams[each]);
        DO(cudaEventDestroy, ends[each]);
    }
    DO(cudaFree, data);
}

/// Allowed use of all the calls above: no error, no violation, and nothing is left.
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
    twoStreamsInOneCapture();
    float *data = memory(2048), *place = memory(256), host[4] = {};
    DO(cudaMemsetAsync, data, 0, 2048 * sizeof(float), one);
    DO(cudaMemcpyAsync, data, host, sizeof host, cudaMemcpyHostToDevice, one);
    DO(cudaStreamSynchronize, one);
    multiply(data, data + 256, data + 512, place, 256);
    void* pinned = nullptr;
    DO(cudaHostAlloc, &pinned, 64, cudaHostAllocPortable);
    launchOn(one, 32, {data + 2048, nullptr, pinned}); // the end of an allocation, where an empty range may begin
    DO(cudaSetDevice, 1);
    DO(cudaDeviceEnablePeerAccess, 0, 0);
    cudaStream_t there = stream();
    launchOn(there, 32, {data});
    DO(cudaStreamSynchronize, there);
    DO(cudaStreamDestroy, there);
    DO(cudaSetDevice, 0);
    DO(cudaStreamSynchronize, one);
    DO(cudaFreeHost, pinned);
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
    {"kernelOfAnotherGpusMemory",
     [] {
         float* here = memory(8);
         DO(cudaSetDevice, 1);
         launchOn(stream(), 32, {here});
     }},
    {"kernelOfTheHostsMemory",
     [] {
         static float values[8];
         launchOn(stream(), 32, {values});
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
    {"captureThatIsNotJoined",
     [] {
         const Forked streams;
         launchOn(streams.two);
         endCapture(streams.one);
     }},
    {"captureJoinedTooEarly",
     [] {
         const Forked streams;
         DO(cudaEventRecord, streams.end, streams.two);
         DO(cudaStreamWaitEvent, streams.one, streams.end, 0);
         launchOn(streams.two);
         endCapture(streams.one);
     }},
    {"captureEndedOnAnotherStream", [] { endCapture(Forked().two); }},
    {"capturesThatMerge",
     [] {
         cudaStream_t one = stream(), other = stream();
         cudaEvent_t here = event();
         DO(cudaStreamBeginCapture, one, cudaStreamCaptureModeThreadLocal);
         DO(cudaStreamBeginCapture, other, cudaStreamCaptureModeThreadLocal);
         DO(cudaEventRecord, here, one);
         DO(cudaStreamWaitEvent, other, here, 0);
         endCapture(one);
         endCapture(other);
     }},
    {"waitForACaptureThatIsOver",
     [] {
         cudaStream_t one = stream();
         cudaEvent_t here = event();
         DO(cudaStreamBeginCapture, one, cudaStreamCaptureModeThreadLocal);
         DO(cudaEventRecord, here, one);
         endCapture(one);
         DO(cudaStreamWaitEvent, one, here, 0);
     }},
    {"legacyStreamInACapture",
     [] {
         cudaStream_t one = stream();
         cudaEvent_t here = event();
         DO(cudaStreamBeginCapture, one, cudaStreamCaptureModeThreadLocal);
         DO(cudaEventRecord, here, one);
         DO(cudaStreamWaitEvent, nullptr, here, 0);
         endCapture(one);
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
    {"operationCapturedBySomeRanks",
     [] {
         ranks(2, [](int rank, ncclComm_t communicator, cudaStream_t on, float* data) {
             if (rank == 0)
                 DO(cudaStreamBeginCapture, on, cudaStreamCaptureModeThreadLocal);
             DO(ncclAllReduce, data, data, 16, ncclFloat, ncclSum, communicator, on);
             if (rank == 0) {
                 cudaGraph_t graph = nullptr;
                 cudaGraphExec_t made = nullptr;
                 DO(cudaStreamEndCapture, on, &graph);
                 DO(cudaGraphInstantiate, &made, graph, 0);
                 DO(cudaGraphLaunch, made, on);
                 DO(cudaStreamSynchronize, on);
                 DO(cudaGraphExecDestroy, made);
                 DO(cudaGraphDestroy, graph);
             }
             DO(cudaStreamSynchronize, on);
         });
     }},
    {"communicatorBeforeItsGraphs",
     [] {
         ranks(1, [](int, ncclComm_t communicator, cudaStream_t on, float* data) {
             cudaGraph_t graph = nullptr;
             DO(cudaStreamBeginCapture, on, cudaStreamCaptureModeThreadLocal);
             DO(ncclAllReduce, data, data, 8, ncclFloat, ncclSum, communicator, on);
             DO(cudaStreamEndCapture, on, &graph);
             DO(ncclCommAbort, communicator);
             DO(cudaGraphDestroy, graph);
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
