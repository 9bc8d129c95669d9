// SPDX-License-Identifier: GPL-3.0-or-later
// The CUDA plugin: the runtime's calls behind the C table; the other files of this folder add theirs.
#include "executor/cuda/plugin/plugin.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace pipewright::plugin {

namespace {

thread_local std::string lastErrorText = "no error";

} // namespace

int check(cudaError_t code)
{
    if (code != cudaSuccess) {
        lastErrorText = std::string(cudaGetErrorName(code)) + ": " + cudaGetErrorString(code);
        cudaGetLastError(); // clears it, so that the next call does not report it again
    }
    return static_cast<int>(code);
}

/// cudaErrorNotReady is an answer, not an error.
int answer(cudaError_t code, int32_t* done)
{
    *done = code == cudaSuccess;
    return code == cudaErrorNotReady ? 0 : check(code);
}

const char* lastError()
{
    return lastErrorText.c_str();
}

int makeCurrent(int32_t device)
{
    static thread_local int32_t present = -1;
    if (present == device)
        return 0;
    const int code = check(cudaSetDevice(device));
    present = code == 0 ? device : -1;
    return code;
}

int fault(std::string text)
{
    lastErrorText = std::move(text);
    return faultCode;
}

namespace {

cudaEvent_t event(void* handle)
{
    return static_cast<cudaEvent_t>(handle);
}

cudaGraphExec_t graph(void* handle)
{
    return static_cast<cudaGraphExec_t>(handle);
}

const char* buildInfo()
{
    static const std::string text =
        "CUDA " + std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
    return text.c_str();
}

int deviceCount(int32_t* count)
{
    *count = 0;
    return check(cudaGetDeviceCount(count));
}

int deviceInfo(int32_t device, PipewrightCudaDevice* info)
{
    cudaDeviceProp properties{};
    if (const int code = check(cudaGetDeviceProperties(&properties, device)); code != 0)
        return code;
    *info = {};
    std::string_view(properties.name).copy(info->name, sizeof info->name - 1); // cut off when it is longer
    info->memory = static_cast<int64_t>(properties.totalGlobalMem);
    info->multiprocessors = properties.multiProcessorCount;
    info->major = properties.major;
    info->minor = properties.minor;
    info->copyEngines = properties.asyncEngineCount;
    return check(cudaDeviceGetPCIBusId(info->busId, sizeof info->busId, device));
}

int allocate(int32_t device, int64_t bytes, void** data)
{
    *data = nullptr;
    if (const int code = makeCurrent(device); code != 0)
        return code;
    // Nothing is allocated during a step, so the plain allocator is enough. Zero bytes still get an address.
    return check(cudaMalloc(data, static_cast<size_t>(bytes > 0 ? bytes : 1)));
}

int release(int32_t device, void* data)
{
    if (const int code = makeCurrent(device); code != 0)
        return code;
    return check(cudaFree(data));
}

int allocateHost(int64_t bytes, void** data)
{
    *data = nullptr;
    return check(cudaHostAlloc(data, static_cast<size_t>(bytes > 0 ? bytes : 1), cudaHostAllocPortable));
}

int releaseHost(void* data)
{
    return check(cudaFreeHost(data));
}

int destroyStream(void* handle)
{
    return check(cudaStreamDestroy(stream(handle)));
}

int streamDone(void* handle, int32_t* done)
{
    return answer(cudaStreamQuery(stream(handle)), done);
}

int createEvent(int32_t device, void** result)
{
    if (const int code = makeCurrent(device); code != 0)
        return code;
    return check(cudaEventCreate(reinterpret_cast<cudaEvent_t*>(result)));
}

int destroyEvent(void* handle)
{
    return check(cudaEventDestroy(event(handle)));
}

int recordEvent(void* handle, void* on)
{
    return check(cudaEventRecord(event(handle), stream(on)));
}

int eventDone(void* handle, int32_t* done)
{
    return answer(cudaEventQuery(event(handle)), done);
}

int streamWaits(void* handle, void* on)
{
    return check(cudaStreamWaitEvent(stream(handle), event(on), 0));
}

int elapsed(void* from, void* to, float* milliseconds)
{
    return check(cudaEventElapsedTime(milliseconds, event(from), event(to)));
}

int copy(void* to, int32_t toDevice, const void* from, int32_t fromDevice, int64_t bytes, void* on)
{
    const auto size = static_cast<size_t>(bytes);
    if (toDevice < 0 || fromDevice < 0 || toDevice == fromDevice)
        return check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream(on)));
    return check(cudaMemcpyPeerAsync(to, toDevice, from, fromDevice, size, stream(on)));
}

int enablePeer(int32_t from, int32_t to, int32_t* direct)
{
    *direct = 0;
    for (const auto& [device, other] : {std::pair{from, to}, {to, from}}) {
        if (const int code = check(cudaDeviceCanAccessPeer(direct, device, other)); code != 0 || !*direct)
            return code;
        if (const int code = makeCurrent(device); code != 0)
            return code;
        const cudaError_t enabled = cudaDeviceEnablePeerAccess(other, 0);
        if (enabled == cudaErrorPeerAccessAlreadyEnabled)
            cudaGetLastError();
        else if (const int code = check(enabled); code != 0)
            return code;
    }
    return 0;
}

int beginCapture(void* on)
{
    // Capture of this thread only: other devices' threads continue to issue work.
    return check(cudaStreamBeginCapture(stream(on), cudaStreamCaptureModeThreadLocal));
}

int endCapture(void* on, void** result)
{
    *result = nullptr;
    cudaGraph_t captured = nullptr;
    if (const int code = check(cudaStreamEndCapture(stream(on), &captured)); code != 0)
        return code;
    cudaGraphExec_t made = nullptr;
    const int code = check(cudaGraphInstantiate(&made, captured, 0));
    cudaGraphDestroy(captured);
    *result = made;
    return code;
}

int launchGraph(int32_t device, void* handle, void* on)
{
    if (const int code = makeCurrent(device); code != 0)
        return code;
    return check(cudaGraphLaunch(graph(handle), stream(on)));
}

int destroyGraph(void* handle)
{
    return check(cudaGraphExecDestroy(graph(handle)));
}

const PipewrightCudaTable& table()
{
    static const PipewrightCudaTable made = [] {
        PipewrightCudaTable table{};
        table.abi = PIPEWRIGHT_CUDA_ABI;
        table.size = sizeof(PipewrightCudaTable);
        table.toolkit = CUDART_VERSION;
        table.buildInfo = buildInfo;
        table.lastError = lastError;
        table.deviceCount = deviceCount;
        table.deviceInfo = deviceInfo;
        table.allocate = allocate;
        table.release = release;
        table.allocateHost = allocateHost;
        table.releaseHost = releaseHost;
        table.destroyStream = destroyStream;
        table.streamDone = streamDone;
        table.createEvent = createEvent;
        table.destroyEvent = destroyEvent;
        table.recordEvent = recordEvent;
        table.eventDone = eventDone;
        table.streamWaits = streamWaits;
        table.elapsed = elapsed;
        table.copy = copy;
        table.enablePeer = enablePeer;
        table.beginCapture = beginCapture;
        table.endCapture = endCapture;
        table.launchGraph = launchGraph;
        table.destroyGraph = destroyGraph;
        addSlices(table);
        addMaths(table);
        addNccl(table);
        addRecorder(table);
        return table;
    }();
    return made;
}

} // namespace

} // namespace pipewright::plugin

extern "C" __attribute__((visibility("default"))) const PipewrightCudaTable* pipewrightCudaTable()
{
    return &pipewright::plugin::table();
}
