// SPDX-License-Identifier: GPL-3.0-or-later
// libcudart: GPUs, memory, copies and launches. The order of things on streams is in runtimestreams.cpp.
#include "runtime.h"

#include "capture.h"
#include "green.h"
#include "launch.h"
#include "launches.h"
#include "machine.h"
#include "observer.h"
#include "toolkit.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

using namespace standin;

namespace {

thread_local cudaError_t lastError = cudaSuccess;
thread_local std::vector<Stream*> capturing;
std::mutex peersMutex;
std::set<std::pair<int, int>> peers; ///< (GPU, peer) pairs with access enabled
std::mutex pinnedMutex;
std::map<const char*, std::size_t> pinned; ///< host memory of cudaHostAlloc

bool isPinned(const void* place)
{
    const std::lock_guard lock(pinnedMutex);
    const auto* const at = static_cast<const char*>(place);
    auto behind = pinned.upper_bound(at);
    return behind != pinned.begin() && at < std::prev(behind)->first + std::prev(behind)->second;
}

bool isDevice(int device)
{
    return device >= 0 && device < settings().gpus;
}

/// driver_types.h:394, a driver "older than the CUDA runtime library". Of the same major version it need not be as new
/// ("CUDA Compatibility", "Minor Version Compatibility").
cudaError_t whyNoRuntime()
{
    return settings().driver / 1000 < toolkit / 1000 ? cudaErrorInsufficientDriver : cudaSuccess;
}

/// As nvcc mangles kernels, without their arguments: the unnamed namespace of a .cu is called after the file.
std::string mangled(const Launch& launch)
{
    const auto sized = [](const std::string& text) { return std::to_string(text.size()) + text; };
    const std::string kernel = launch.kernel, place = launch.place;
    const std::string name = sized(kernel.substr(0, kernel.find('<')));
    const std::size_t end = place.find(".cu:");
    if (end == std::string::npos)
        return "_Z" + name + "v";
    const std::string file = place.substr(0, end) + "_cu";
    return "_ZN" + sized("_GLOBAL__N__00000000_" + std::to_string(file.size()) + "_" + file + "_00000000") + name
           + "Ev";
}

/// A copy between any two places, in the order of the stream.
cudaError_t copy(Stream& stream, void* to, int toDevice, const void* from, int fromDevice, std::size_t bytes)
{
    if (bytes == 0)
        return cudaSuccess;
    if (toDevice == -2 || fromDevice == -2)
        return cudaErrorInvalidValue; // it extends beyond its allocation
    const bool peer = toDevice >= 0 && fromDevice >= 0 && toDevice != fromDevice;
    if (peer) {
        const std::lock_guard lock(peersMutex);
        const bool direct = peers.contains({toDevice, fromDevice}) || peers.contains({fromDevice, toDevice});
        // CUDA C++ Programming Guide, "Peer-to-Peer Memory Copy": without access "the copy is staged through the host".
        count(direct ? "copies between GPUs" : "copies between GPUs through the host");
    }
    if (fromDevice < 0 || toDevice < 0)
        count(fromDevice < 0 ? "copies from the host" : "copies to the host");
    if ((fromDevice < 0 && !isPinned(from)) || (toDevice < 0 && !isPinned(to)))
        count("copies of pageable memory");
    std::shared_ptr<std::vector<char>> staged;
    if (fromDevice < 0 && !stream.capture && !isPinned(from)) {
        // "CUDA Runtime API", "API synchronization behavior": from pageable memory the bytes are staged before the call
        // returns; to pageable memory the call may, but need not, wait.
        staged =
            std::make_shared<std::vector<char>>(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
    }
    pushActivity(stream,
                 {.kind = peer ? Activity::PeerCopy : Activity::Copy,
                  .bytes = bytes,
                  .fromDevice = fromDevice,
                  .toDevice = toDevice},
                 [=] { std::memmove(to, staged ? staged->data() : from, bytes); });
    return cudaSuccess;
}

} // namespace

namespace standin {

cudaError_t ended(cudaError_t code)
{
    if (code != cudaSuccess && code != cudaErrorNotReady)
        lastError = code;
    return code;
}

void beganCapture(Stream& stream, int change)
{
    if (change > 0)
        capturing.push_back(&stream);
    else
        std::erase(capturing, &stream);
}

cudaError_t forbiddenInCapture()
{
    cudaError_t code = cudaSuccess;
    for (Stream* stream : capturing)
        if (stream->capture && stream->capture->threadLocal) {
            stream->capture->invalid = true;
            code = cudaErrorStreamCaptureUnsupported;
        }
    return code;
}

cudaError_t stateOf(int device)
{
    return isLost(device) ? cudaErrorECCUncorrectable : cudaSuccess;
}

} // namespace standin

/// CUDA C++ Programming Guide, "Peer-to-Peer Memory Access": a kernel reaches another GPU's memory once its own GPU was
/// given access to it; and without heterogeneous memory management it never reaches pageable memory of the host
/// ("Unified Memory").
static void checkMemoryOf(const standin::Launch& launch, int device)
{
    const std::string kernel = std::string("a kernel (") + launch.kernel + ") on GPU " + std::to_string(device);
    const auto check = [&](const void* place) {
        const int owner = deviceOf(place, 1);
        if (owner < 0 || owner == device)
            return;
        const std::lock_guard lock(peersMutex);
        if (!peers.contains({device, owner}))
            broken(kernel + " was given memory of GPU " + std::to_string(owner) + ", which it does not reach",
                   "CUDA C++ Programming Guide, Peer-to-Peer Memory Access");
    };
    for (const void* place : launch.words)
        check(place);
    for (const void* place : launch.pointers) {
        check(place);
        // An empty range may begin at the end of an allocation.
        if (place && deviceOf(place, 1) == -1 && deviceOf(static_cast<const char*>(place) - 1, 1) < 0
            && !isPinned(place))
            broken(kernel + " was given pageable memory of the host", "CUDA C++ Programming Guide, Unified Memory");
    }
}

/// Called by the launches of transformed kernels.
extern "C" __attribute__((visibility("default"))) void pipewrightStandinLaunch(const standin::Launch& launch)
{
    const Call call(Domain::Runtime, "cudaLaunchKernel");
    if (const cudaError_t code = stateOf(currentDevice()); code != cudaSuccess)
        return void(ended(code));
    Stream* stream = streamOf(launch.stream, currentDevice());
    if (!stream)
        return void(ended(cudaErrorInvalidResourceHandle));
    if (const std::string why = whyNot(launch); !why.empty())
        return void(ended(cudaErrorInvalidConfiguration));
    checkMemoryOf(launch, stream->device);
    Launch placed = launch;
    placed.firstMultiprocessor = stream->slice ? stream->slice->first : 0;
    placed.multiprocessors =
        stream->slice ? stream->slice->multiprocessors : static_cast<unsigned>(settings().multiprocessors);
    if (failsNow("launch"))
        return void(ended(cudaErrorLaunchOutOfResources));
    if (!launchKernel(*stream, mangled(launch), [placed] { runGrid(placed); }))
        ended(cudaErrorInvalidResourceHandle);
}

extern "C" {

cudaError_t cudaGetLastError()
{
    return std::exchange(lastError, cudaSuccess);
}

cudaError_t cudaPeekAtLastError()
{
    return lastError;
}

const char* cudaGetErrorName(cudaError_t code)
{
    switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorLaunchOutOfResources: return "cudaErrorLaunchOutOfResources";
    case cudaErrorECCUncorrectable: return "cudaErrorECCUncorrectable";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorPeerAccessAlreadyEnabled: return "cudaErrorPeerAccessAlreadyEnabled";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureIsolation: return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureMerge: return "cudaErrorStreamCaptureMerge";
    case cudaErrorStreamCaptureUnmatched: return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined: return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureImplicit: return "cudaErrorStreamCaptureImplicit";
    case cudaErrorCapturedEvent: return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureWrongThread: return "cudaErrorStreamCaptureWrongThread";
    default: return "unrecognized error code";
    }
}

const char* cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorECCUncorrectable: return "uncorrectable ECC error encountered";
    case cudaErrorLaunchOutOfResources: return "too many resources requested for launch";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    default: return cudaGetErrorName(code);
    }
}

cudaError_t cudaDriverGetVersion(int* version)
{
    *version = settings().driver;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* gpus)
{
    if (const cudaError_t code = whyNoRuntime(); code != cudaSuccess)
        return ended(code);
    *gpus = settings().gpus;
    return ended(settings().gpus > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device)
{
    if (!isDevice(device))
        return ended(cudaErrorInvalidDevice);
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "stand-in GPU, none of NVIDIA's");
    properties->totalGlobalMem = settings().memory;
    properties->multiProcessorCount = settings().multiprocessors;
    properties->major = settings().major;
    properties->minor = settings().minor;
    properties->asyncEngineCount = 3;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int device)
{
    if (!isDevice(device))
        return ended(cudaErrorInvalidDevice);
    if (what != cudaDevAttrComputeCapabilityMajor) // nothing else is asked for
        return ended(cudaErrorInvalidValue);
    *value = settings().major;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device)
{
    if (!isDevice(device))
        return ended(cudaErrorInvalidDevice);
    std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device)
{
    const Call call(Domain::Runtime, "cudaGetDevice");
    *device = currentDevice();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    const Call call(Domain::Runtime, "cudaSetDevice");
    if (const cudaError_t code = whyNoRuntime(); code != cudaSuccess)
        return ended(code);
    if (!isDevice(device))
        return ended(cudaErrorInvalidDevice);
    setCurrentDevice(device);
    usePrimaryContext(
        device); // cuda_runtime_api.h, cudaSetDevice: since 12.0 it "will explicitly initialize the runtime"
    return ended(stateOf(device));
}

cudaError_t cudaMalloc(void** place, std::size_t bytes)
{
    const Call call(Domain::Runtime, "cudaMalloc");
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    if (const cudaError_t code = stateOf(currentDevice()); code != cudaSuccess)
        return ended(code);
    usePrimaryContext(currentDevice());
    switch (allocate(currentDevice(), bytes, place)) {
    case Allocated::Yes:
        if (Observer* const seer = observer.load())
            seer->allocated(currentDevice(), static_cast<std::int64_t>(bytes), *place, presentCorrelation());
        return cudaSuccess;
    case Allocated::NoRoom:
    case Allocated::Failed: return ended(cudaErrorMemoryAllocation);
    }
    return ended(cudaErrorUnknown);
}

cudaError_t cudaFree(void* place)
{
    const Call call(Domain::Runtime, "cudaFree");
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    usePrimaryContext(currentDevice());
    if (!place)
        return ended(stateOf(currentDevice()));
    std::size_t bytes = 0;
    int device = 0;
    if (!release(place, &bytes, &device))
        return ended(cudaErrorInvalidValue); // cuda_runtime_api.h:4730, "already been called before"
    if (Observer* const seer = observer.load())
        seer->allocated(device, -static_cast<std::int64_t>(bytes), place, presentCorrelation());
    return ended(stateOf(device));
}

/// Pinned host memory.
cudaError_t cudaHostAlloc(void** place, std::size_t bytes, unsigned int)
{
    const Call call(Domain::Runtime, "cudaHostAlloc");
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    *place = std::malloc(bytes);
    if (!*place)
        return ended(cudaErrorMemoryAllocation);
    const std::lock_guard lock(pinnedMutex);
    pinned[static_cast<const char*>(*place)] = bytes;
    hold("pinned host memory", 1);
    return ended(cudaSuccess);
}

cudaError_t cudaFreeHost(void* place)
{
    const Call call(Domain::Runtime, "cudaFreeHost");
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    if (place) {
        const std::lock_guard lock(pinnedMutex);
        if (pinned.erase(static_cast<const char*>(place)) == 0)
            return ended(cudaErrorInvalidValue);
        hold("pinned host memory", -1);
    }
    std::free(place);
    return ended(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void* place, int value, std::size_t bytes, cudaStream_t handle)
{
    const Call call(Domain::Runtime, "cudaMemsetAsync");
    Stream* stream = streamOf(handle, currentDevice());
    if (!stream)
        return ended(cudaErrorInvalidResourceHandle);
    if (bytes > 0 && deviceOf(place, bytes) < 0)
        return ended(cudaErrorInvalidValue);
    if (bytes > 0)
        pushActivity(*stream, {.kind = Activity::Set, .bytes = bytes}, [=] { std::memset(place, value, bytes); });
    return ended(stateOf(stream->device));
}

/// Does not wait for the host (cuda_runtime_api.h:6787), but goes to the legacy stream.
cudaError_t cudaMemset(void* place, int value, std::size_t bytes)
{
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    return cudaMemsetAsync(place, value, bytes, nullptr);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t handle)
{
    const Call call(Domain::Runtime, "cudaMemcpyAsync");
    Stream* stream = streamOf(handle, currentDevice());
    if (!stream)
        return ended(cudaErrorInvalidResourceHandle);
    if (const cudaError_t code = stateOf(stream->device); code != cudaSuccess)
        return ended(code);
    const int toDevice = deviceOf(to, bytes), fromDevice = deviceOf(from, bytes);
    const bool toHost = kind == cudaMemcpyDeviceToHost, fromHost = kind == cudaMemcpyHostToDevice;
    // cuda_runtime_api.h:6291, pointers "that do not match the direction": undefined.
    if (bytes > 0 && kind != cudaMemcpyDefault && (toHost != (toDevice == -1) || fromHost != (fromDevice == -1)))
        broken("a copy whose pointers do not match its direction", "cuda_runtime_api.h:6291");
    return ended(copy(*stream, to, toDevice, from, fromDevice, bytes));
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind)
{
    const Call call(Domain::Runtime, "cudaMemcpy");
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    const cudaError_t code = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    streamOf(nullptr, currentDevice())->finish();
    return code != cudaSuccess ? code : ended(stateOf(currentDevice()));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int toDevice, const void* from, int fromDevice, std::size_t bytes,
                                cudaStream_t handle)
{
    const Call call(Domain::Runtime, "cudaMemcpyPeerAsync");
    Stream* stream = streamOf(handle, currentDevice());
    if (!stream)
        return ended(cudaErrorInvalidResourceHandle);
    if (!isDevice(toDevice) || !isDevice(fromDevice))
        return ended(cudaErrorInvalidDevice);
    for (const int device : {stream->device, toDevice, fromDevice})
        if (const cudaError_t code = stateOf(device); code != cudaSuccess)
            return ended(code);
    if (bytes > 0 && (deviceOf(to, bytes) != toDevice || deviceOf(from, bytes) != fromDevice))
        return ended(cudaErrorInvalidValue); // cuda_runtime_api.h:6338, "the base device pointer" there
    return ended(copy(*stream, to, toDevice, from, fromDevice, bytes));
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer)
{
    const Call call(Domain::Runtime, "cudaDeviceCanAccessPeer");
    if (!isDevice(device) || !isDevice(peer))
        return ended(cudaErrorInvalidDevice);
    *can = settings().peers && device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    const Call call(Domain::Runtime, "cudaDeviceEnablePeerAccess");
    if (flags != 0)
        return ended(cudaErrorInvalidValue);
    if (!isDevice(peer) || peer == currentDevice() || !settings().peers)
        return ended(cudaErrorInvalidDevice);
    const std::lock_guard lock(peersMutex);
    const bool isNew = peers.insert({currentDevice(), peer}).second; // one way only, cuda_runtime_api.h:8497
    return ended(isNew ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** address, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status)
{
    *address = nullptr;
    if (static_cast<int>(version) > settings().driver) // cuda_runtime_api.h:13115
        return ended(cudaErrorInvalidValue);
    bool known = false;
    *address = driverEntryPoint(name, static_cast<int>(version), &known);
    if (status)
        *status = *address ? cudaDriverEntryPointSuccess
                  : known  ? cudaDriverEntryPointVersionNotSufficent
                           : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess; // cuda_runtime_api.h:13132, also when there is none
}

} // extern "C"
