// SPDX-License-Identifier: GPL-3.0-or-later
// libcudart: captures and graphs.
#include "capture.h"
#include "machine.h"
#include "observer.h"
#include "runtime.h"

#include <atomic>
#include <set>

using namespace standin;

namespace {

std::mutex mutex; ///< guards what follows
std::set<const void*> graphs;
std::atomic<std::uint64_t> nodes{0};

template<typename Handle>
bool isGraph(Handle handle)
{
    const std::lock_guard lock(mutex);
    return graphs.contains(handle);
}

} // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    const Call call(Domain::Runtime, "cudaStreamBeginCapture");
    Stream* stream = handle ? streamOf(handle, 0) : nullptr;
    if (!handle)
        return ended(cudaErrorStreamCaptureUnsupported); // cuda_runtime_api.h:2440, not of the legacy stream
    if (!stream)
        return ended(cudaErrorInvalidResourceHandle);
    if (stream->capture)
        return ended(cudaErrorIllegalState);
    stream->capture = std::make_shared<Capture>(*stream, mode != cudaStreamCaptureModeRelaxed);
    stream->branch = 0;
    beganCapture(*stream, 1);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* result)
{
    const Call call(Domain::Runtime, "cudaStreamEndCapture");
    Stream* stream = handle ? streamOf(handle, 0) : nullptr;
    *result = nullptr;
    if (!stream || !stream->capture)
        return ended(stream ? cudaErrorIllegalState : cudaErrorInvalidResourceHandle);
    if (&stream->capture->origin != stream)
        return ended(cudaErrorStreamCaptureUnmatched); // driver_types.h, "not initiated in this stream"
    if (stream->capture->threadLocal && stream->capture->thread != std::this_thread::get_id())
        return ended(cudaErrorStreamCaptureWrongThread); // cuda_runtime_api.h:2570
    const std::shared_ptr<Capture> capture = stream->capture;
    capture->end();
    beganCapture(*stream, -1);
    if (capture->invalid)
        return ended(cudaErrorStreamCaptureInvalidated);
    if (!capture->isJoined())
        return ended(cudaErrorStreamCaptureUnjoined); // driver_types.h, "a fork that was not joined"
    auto* graph = new Graph{std::move(capture->nodes), capture->streams, {}};
    for (Node& node : graph->nodes)
        node.number = ++nodes;
    {
        const std::lock_guard lock(mutex);
        graphs.insert(graph);
    }
    hold("graphs", 1);
    *result = reinterpret_cast<cudaGraph_t>(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* result, cudaGraph_t graph, unsigned long long)
{
    const Call call(Domain::Runtime, "cudaGraphInstantiate");
    if (!isGraph(graph))
        return ended(cudaErrorInvalidValue);
    const Graph& captured = *reinterpret_cast<Graph*>(graph);
    auto* made = new Graph{captured.nodes, captured.streams, {}};
    made->makeExecutable();
    {
        const std::lock_guard lock(mutex);
        graphs.insert(made);
    }
    hold("graphs", 1);
    *result = reinterpret_cast<cudaGraphExec_t>(made);
    return cudaSuccess;
}

static cudaError_t destroyGraph(void* handle)
{
    {
        const std::lock_guard lock(mutex);
        if (graphs.erase(handle) == 0)
            return ended(cudaErrorInvalidValue);
    }
    delete static_cast<Graph*>(handle);
    hold("graphs", -1);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    const Call call(Domain::Runtime, "cudaGraphDestroy");
    return destroyGraph(graph);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    const Call call(Domain::Runtime, "cudaGraphExecDestroy");
    return destroyGraph(graph);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t on)
{
    const Call call(Domain::Runtime, "cudaGraphLaunch");
    Stream* stream = streamOf(on, currentDevice());
    if (!stream)
        return ended(cudaErrorInvalidResourceHandle);
    if (!isGraph(handle))
        return ended(cudaErrorInvalidValue);
    if (const cudaError_t code = stateOf(stream->device); code != cudaSuccess)
        return ended(code);
    count("graph launches");
    reinterpret_cast<Graph*>(handle)->launch(*stream);
    return cudaSuccess;
}

} // extern "C"
