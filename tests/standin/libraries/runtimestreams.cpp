// SPDX-License-Identifier: GPL-3.0-or-later
// libcudart: streams and events.
#include "capture.h"
#include "green.h"
#include "machine.h"
#include "observer.h"
#include "runtime.h"

#include <set>

using namespace standin;

namespace {

/// The live handles of events; a destroyed handle is invalid at once (cuda_runtime_api.h, note_destroy_ub).
std::mutex mutex; ///< guards what follows
std::set<SharedEvent*> events;

SharedEvent eventOf(cudaEvent_t handle)
{
    const std::lock_guard lock(mutex);
    auto* const found = reinterpret_cast<SharedEvent*>(handle);
    return events.contains(found) ? *found : nullptr;
}

cudaError_t makeEvent(cudaEvent_t* result, bool timed)
{
    auto* made = new SharedEvent(std::make_shared<Event>(currentDevice(), timed));
    {
        const std::lock_guard lock(mutex);
        events.insert(made);
    }
    hold("events", 1);
    *result = reinterpret_cast<cudaEvent_t>(made);
    return cudaSuccess;
}

/// For an event that was recorded in a capture: the stream joins the capture.
cudaError_t followCapture(Stream& stream, bool legacy, const Event& event)
{
    Capture& capture = *event.capture;
    if (capture.ended)
        return cudaErrorCapturedEvent; // driver_types.h, "last recorded in a capturing stream"
    if (legacy)
        return cudaErrorStreamCaptureImplicit; // driver_types.h, a dependency "from cudaStreamLegacy"
    if (stream.capture && stream.capture != event.capture) {
        stream.capture->invalid = capture.invalid = true;
        return cudaErrorStreamCaptureMerge; // driver_types.h, "a merge of two independent capture sequences"
    }
    capture.follow(event.capture, stream, event.after);
    return cudaSuccess;
}

void seen(Synchronization::Kind kind, const Stream* stream, std::uint32_t context, std::int64_t start, cudaError_t code)
{
    if (Observer* const seer = observer.load())
        seer->synchronized({kind, start, now(), stream ? stream->context : context, stream ? stream->number : 0,
                            presentCorrelation(), static_cast<int>(code)});
}

} // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* result, unsigned flags)
{
    const Call call(Domain::Runtime, "cudaStreamCreateWithFlags");
    if (flags != cudaStreamNonBlocking)
        broken("a stream that blocks with the legacy stream, which this stand-in does not play", "stand-in");
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    usePrimaryContext(currentDevice());
    *result = reinterpret_cast<cudaStream_t>(
        makeStream(currentDevice(), nullptr, static_cast<std::uint32_t>(currentDevice()) + 1));
    hold("streams", 1);
    hold("streams of GPU " + std::to_string(currentDevice()), 1);
    return ended(stateOf(currentDevice()));
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    const Call call(Domain::Runtime, "cudaStreamDestroy");
    Stream* stream = handle ? streamOf(handle, 0) : nullptr;
    const int device = stream ? stream->device : 0;
    if (!stream || !destroyStream(handle))
        return ended(cudaErrorInvalidResourceHandle);
    hold("streams", -1);
    hold("streams of GPU " + std::to_string(device), -1);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    const Call call(Domain::Runtime, "cudaStreamQuery");
    const std::int64_t start = now();
    Stream* stream = streamOf(handle, currentDevice());
    if (!stream)
        return ended(cudaErrorInvalidResourceHandle);
    if (stream->capture) {
        stream->capture->invalid = true;
        return ended(cudaErrorStreamCaptureUnsupported);
    }
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    const cudaError_t lost = stateOf(stream->device);
    const cudaError_t code = lost != cudaSuccess ? lost : stream->idle() ? stateOf(stream->device) : cudaErrorNotReady;
    seen(Synchronization::StreamQuery, stream, 0, start, code);
    return ended(code);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    const Call call(Domain::Runtime, "cudaStreamSynchronize");
    const std::int64_t start = now();
    Stream* stream = streamOf(handle, currentDevice());
    if (!stream)
        return ended(cudaErrorInvalidResourceHandle);
    if (stream->capture) {
        stream->capture->invalid = true;
        return ended(cudaErrorStreamCaptureUnsupported);
    }
    stream->finish();
    seen(Synchronization::StreamFinish, stream, 0, start, stateOf(stream->device));
    return ended(stateOf(stream->device));
}

cudaError_t cudaEventCreate(cudaEvent_t* result)
{
    const Call call(Domain::Runtime, "cudaEventCreate");
    return makeEvent(result, true);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* result, unsigned flags)
{
    const Call call(Domain::Runtime, "cudaEventCreateWithFlags");
    return makeEvent(result, (flags & cudaEventDisableTiming) == 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    const Call call(Domain::Runtime, "cudaEventDestroy");
    auto* const gone = reinterpret_cast<SharedEvent*>(handle);
    {
        const std::lock_guard lock(mutex);
        if (events.erase(gone) == 0)
            return ended(cudaErrorInvalidResourceHandle);
    }
    delete gone;
    hold("events", -1);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on)
{
    const Call call(Domain::Runtime, "cudaEventRecord");
    const SharedEvent event = eventOf(handle);
    Stream* stream = streamOf(on, currentDevice());
    // cuda_runtime_api.h:2804: of one context. Events here belong to the GPU's primary context, of which green contexts
    // are parts (cuda.h:24883).
    if (!event || !stream || event->device != stream->device)
        return ended(cudaErrorInvalidResourceHandle);
    if (const cudaError_t code = stateOf(stream->device); code != cudaSuccess)
        return ended(code);
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(event->mutex);
        event->capture = stream->capture;
        if (event->capture) { // marks a place in the graph; nothing happens
            event->after = event->capture->endOf(stream->branch);
            return cudaSuccess;
        }
        number = ++event->recorded;
    }
    stream->push([event, number](const Running&) {
        {
            const std::lock_guard lock(event->mutex);
            event->done = std::max(event->done, number);
            event->time = now();
        }
        event->happened.notify_all();
    });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    const Call call(Domain::Runtime, "cudaEventQuery");
    const std::int64_t start = now();
    const SharedEvent event = eventOf(handle);
    if (!event)
        return ended(cudaErrorInvalidResourceHandle);
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    cudaError_t code = stateOf(event->device);
    {
        const std::lock_guard lock(event->mutex);
        if (event->capture) // cuda_runtime_api.h:2547
            return ended(cudaErrorCapturedEvent);
        if (code == cudaSuccess && event->done != event->recorded)
            code = cudaErrorNotReady;
    }
    seen(Synchronization::EventQuery, nullptr, static_cast<std::uint32_t>(event->device) + 1, start, code);
    return ended(code);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    const Call call(Domain::Runtime, "cudaEventSynchronize");
    const SharedEvent event = eventOf(handle);
    if (!event)
        return ended(cudaErrorInvalidResourceHandle);
    if (const cudaError_t code = forbiddenInCapture(); code != cudaSuccess)
        return ended(code);
    std::unique_lock lock(event->mutex);
    waitUnlessLost(lock, event->happened, event->device, event->device, [&] { return event->done == event->recorded; });
    return ended(stateOf(event->device));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    const Call call(Domain::Runtime, "cudaEventElapsedTime");
    std::int64_t times[2] = {};
    for (const bool last : {false, true}) {
        const SharedEvent event = eventOf(last ? to : from);
        if (!event || !event->timed) // cuda_runtime_api.h:3004
            return ended(cudaErrorInvalidResourceHandle);
        const std::lock_guard lock(event->mutex);
        if (event->recorded == 0) // cuda_runtime_api.h:3000
            return ended(cudaErrorInvalidResourceHandle);
        if (event->done != event->recorded)
            return ended(cudaErrorNotReady);
        times[last] = event->time;
    }
    *milliseconds = static_cast<float>(double(times[1] - times[0]) / 1e6);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t on, unsigned)
{
    const Call call(Domain::Runtime, "cudaStreamWaitEvent");
    const SharedEvent event = eventOf(on);
    Stream* stream = streamOf(handle, currentDevice());
    if (!event || !stream)
        return ended(cudaErrorInvalidResourceHandle);
    if (const cudaError_t code = stateOf(stream->device); code != cudaSuccess)
        return ended(code);
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(event->mutex);
        number = event->recorded;
        if (event->capture)
            return ended(followCapture(*stream, handle == nullptr, *event));
        if (stream->capture) {
            stream->capture->invalid = true;
            return ended(cudaErrorStreamCaptureIsolation); // driver_types.h, cudaErrorStreamCaptureIsolation
        }
    }
    if (number == 0) {
        // cuda_runtime_api.h:2814: "an event represents an empty set of work", so the wait is none.
        count("waits for events that were never recorded");
        return cudaSuccess;
    }
    if (failsFromNow("nowait"))
        return cudaSuccess;
    stream->push([event, number, device = stream->device](const Running&) {
        std::unique_lock lock(event->mutex);
        waitUnlessLost(lock, event->happened, event->device, device, [&] { return event->done >= number; });
    });
    return cudaSuccess;
}

} // extern "C"
