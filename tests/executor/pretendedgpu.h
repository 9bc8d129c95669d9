// SPDX-License-Identifier: GPL-3.0-or-later
// Two GPUs made of threads: the CUDA plugin's table with host maths behind it. Every stream is a thread with a queue,
// so work happens when its stream comes to it and not when it is issued, copies overtake maths, and a wait that the
// backend forgot gives wrong numbers (or a data race that the thread sanitizer sees). Events, captures, NCCL's
// rendezvous and its rule of one thread per GPU behave as on a GPU; speed does not.
#pragma once

#include "executor/clock.h"
#include "executor/cuda/table.h"
#include "kernels/operations.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace pretended {

using Work = std::function<void()>;
inline constexpr int gpus = 2, multiprocessors = 16;

inline thread_local std::string lastError = "no error";
inline int fault(std::string text)
{
    lastError = std::move(text);
    return 1;
}

class Stream {
public:
    explicit Stream(std::int32_t device) : device(device), m_thread([this] { run(); }) {}
    ~Stream()
    {
        {
            const std::lock_guard lock(m_mutex);
            m_quit = true;
        }
        m_changed.notify_all();
        m_thread.join();
    }
    void push(Work work)
    {
        if (capturing) {
            captured.push_back(std::move(work));
            return;
        }
        {
            const std::lock_guard lock(m_mutex);
            m_queue.push_back(std::move(work));
        }
        m_changed.notify_all();
    }
    bool done()
    {
        const std::lock_guard lock(m_mutex);
        return m_queue.empty() && !m_busy;
    }

    const std::int32_t device;
    bool capturing = false; ///< of the issuing thread
    std::vector<Work> captured;

private:
    void run()
    {
        for (std::unique_lock lock(m_mutex);;) {
            m_changed.wait(lock, [this] { return m_quit || !m_queue.empty(); });
            if (m_queue.empty())
                return;
            const Work work = std::move(m_queue.front());
            m_queue.pop_front();
            m_busy = true;
            lock.unlock();
            work();
            lock.lock();
            m_busy = false;
        }
    }
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<Work> m_queue;
    bool m_busy = false, m_quit = false;
    std::thread m_thread;
};

/// A wait is for the recording that was the last one when it was issued. Kept alive by whoever is still to use it.
struct Event {
    std::mutex mutex;
    std::condition_variable happened;
    std::uint64_t recorded = 0, done = 0;
    std::int64_t time = 0;
    std::int32_t device = 0;
};
using SharedEvent = std::shared_ptr<Event>;

inline Stream& stream(void* handle)
{
    return *static_cast<Stream*>(handle);
}
inline SharedEvent& event(void* handle)
{
    return *static_cast<SharedEvent*>(handle);
}

/// What "CUPTI" has seen.
struct Recording {
    std::mutex mutex;
    bool running = false;
    std::vector<PipewrightGpuActivity> activities;
};
inline Recording& recording()
{
    static Recording only;
    return only;
}
inline thread_local std::int64_t currentBlock = -1;
inline std::atomic<int> graphLaunches{0}, copies{0};

inline void pushKernel(Stream& on, const char* name, Work work)
{
    on.push([work = std::move(work), name, block = currentBlock, device = on.device] {
        const std::int64_t start = pipewright::steadyNow();
        work();
        const std::lock_guard lock(recording().mutex);
        if (recording().running)
            recording().activities.push_back(
                {start, pipewright::steadyNow(), block, -1, 0, 0, PIPEWRIGHT_GPU_KERNEL, device, 1, 0, -1, name});
    });
}

/// The two ends of a directed pair: a send holds its stream until the receive has taken it.
struct Channel {
    std::mutex mutex;
    std::condition_variable changed;
    const void* data = nullptr;
    std::int64_t bytes = -1; ///< waiting to be taken; -1: none
    bool aborted = false;
};
struct End {
    std::shared_ptr<Channel> channel;
    std::int32_t device = 0;
};

/// NCCL wants one thread per GPU.
inline int callsNccl(std::int32_t device)
{
    static std::mutex mutex;
    static std::map<std::int32_t, std::thread::id> owners;
    static thread_local std::map<std::int32_t, bool> known; // threads come and go with backends
    const std::lock_guard lock(mutex);
    if (known[device])
        return owners[device] == std::this_thread::get_id() ? 0 : fault("NCCL was called from two threads of a GPU");
    known[device] = true;
    owners[device] = std::this_thread::get_id();
    return 0;
}

using Values = std::span<float>;
using Read = std::span<const float>;
inline std::size_t n(std::int64_t count)
{
    return static_cast<std::size_t>(count);
}
inline const pipewright::kernels::Operations& host()
{
    return pipewright::kernels::hostOperations();
}
inline pipewright::kernels::AttentionShape whole(const PipewrightCudaAttention& shape)
{
    return {shape.sequences, shape.length, shape.heads, shape.headSize, 1};
}

inline void addHardware(PipewrightCudaTable& t)
{
    t.abi = PIPEWRIGHT_CUDA_ABI;
    t.size = sizeof(PipewrightCudaTable);
    t.buildInfo = [] { return "pretended"; };
    t.lastError = [] { return lastError.c_str(); };
    t.deviceCount = [](std::int32_t* count) { return *count = gpus, 0; };
    t.deviceInfo = [](std::int32_t, PipewrightCudaDevice* info) {
        *info = {};
        std::strcpy(info->name, "pretended");
        info->memory = std::int64_t{1} << 34;
        info->multiprocessors = multiprocessors;
        return 0;
    };
    t.allocate = [](std::int32_t, std::int64_t bytes, void** data) {
        *data = std::aligned_alloc(256, (n(bytes) / 256 + 1) * 256);
        return *data ? 0 : fault("the host has not that much");
    };
    t.release = [](std::int32_t, void* data) { return std::free(data), 0; };
    t.createSlices = [](std::int32_t, const std::int32_t* wanted, std::int32_t count, std::int32_t* granted,
                        void** slices) {
        int left = multiprocessors;
        for (int i = 0; i < count; ++i) {
            granted[i] = (wanted[i] + 1) / 2 * 2;
            left -= granted[i];
            slices[i] = new std::int32_t(granted[i]);
        }
        return left < 0 ? fault("not that many multiprocessors") : 0;
    };
    t.destroySlice = [](void* slice) { return delete static_cast<std::int32_t*>(slice), 0; };
    t.createStream = [](std::int32_t device, void*, void** made) { return *made = new Stream(device), 0; };
    t.destroyStream = [](void* handle) { return delete &stream(handle), 0; };
    t.streamDone = [](void* handle, std::int32_t* done) { return *done = stream(handle).done(), 0; };
    t.createEvent = [](std::int32_t device, void** made) {
        auto* shared = new SharedEvent(std::make_shared<Event>());
        (*shared)->device = device;
        return *made = shared, 0;
    };
    t.destroyEvent = [](void* handle) { return delete &event(handle), 0; };
    t.recordEvent = [](void* handle, void* on) {
        const SharedEvent what = event(handle);
        if (what->device != stream(on).device)
            return fault("an event was recorded on another GPU than its own");
        std::uint64_t number = 0;
        {
            const std::lock_guard lock(what->mutex);
            number = ++what->recorded;
        }
        stream(on).push([what, number] {
            {
                const std::lock_guard lock(what->mutex);
                what->done = std::max(what->done, number);
                what->time = pipewright::steadyNow();
            }
            what->happened.notify_all();
        });
        return 0;
    };
    t.eventDone = [](void* handle, std::int32_t* done) {
        const std::lock_guard lock(event(handle)->mutex);
        *done = event(handle)->done == event(handle)->recorded;
        return 0;
    };
    t.streamWaits = [](void* on, void* handle) {
        const SharedEvent what = event(handle);
        std::uint64_t number = 0;
        {
            const std::lock_guard lock(what->mutex);
            number = what->recorded;
        }
        if (number == 0) // it would pass at once on a GPU: a mistake of the backend
            return fault("a wait for an event that was never recorded");
        stream(on).push([what, number] {
            std::unique_lock lock(what->mutex);
            what->happened.wait(lock, [&] { return what->done >= number; });
        });
        return 0;
    };
    t.elapsed = [](void* from, void* to, float* milliseconds) {
        if (event(from)->device != event(to)->device)
            return fault("events of two GPUs were compared");
        std::int64_t times[2];
        for (int i = 0; i < 2; ++i) {
            const SharedEvent& each = event(i == 0 ? from : to);
            const std::lock_guard lock(each->mutex);
            if (each->done != each->recorded || each->done == 0)
                return fault("the time of an event that has not happened");
            times[i] = each->time;
        }
        *milliseconds = static_cast<float>(double(times[1] - times[0]) / 1e6);
        return 0;
    };
    t.copy = [](void* to, std::int32_t, const void* from, std::int32_t, std::int64_t bytes, void* on) {
        ++copies;
        stream(on).push([=] { std::memcpy(to, from, n(bytes)); });
        return 0;
    };
    t.enablePeer = [](std::int32_t, std::int32_t, std::int32_t* direct) { return *direct = 1, 0; };
    t.spin = [](void* on, std::int64_t time) {
        pushKernel(stream(on), "spin", [=] { std::this_thread::sleep_for(std::chrono::nanoseconds(time)); });
        return 0;
    };
    t.stamp = [](void* on, void* place) {
        stream(on).push([=] { *static_cast<std::int64_t*>(place) = pipewright::steadyNow(); });
        return 0;
    };
    t.spinFrom = [](void* on, const void* place, std::int64_t time) {
        stream(on).push([=] {
            const std::int64_t left = *static_cast<const std::int64_t*>(place) + time - pipewright::steadyNow();
            std::this_thread::sleep_for(std::chrono::nanoseconds(left));
        });
        return 0;
    };
    t.beginCapture = [](void* on) { return stream(on).capturing = true, 0; };
    t.endCapture = [](void* on, void** graph) {
        stream(on).capturing = false;
        *graph = new std::vector<Work>(std::exchange(stream(on).captured, {}));
        return 0;
    };
    t.launchGraph = [](void* graph, void* on) {
        ++graphLaunches;
        for (const Work& work : *static_cast<std::vector<Work>*>(graph))
            stream(on).push(work);
        return 0;
    };
    t.destroyGraph = [](void* graph) { return delete static_cast<std::vector<Work>*>(graph), 0; };
}

inline void addTools(PipewrightCudaTable& t)
{
    t.beginBlock = [](const char* label, std::int64_t block) {
        currentBlock = block;
        return std::strncmp(label, "PP:", 3) == 0 ? 0 : fault("a block without a name");
    };
    t.endBlock = [] { return currentBlock = -1, 0; };
    t.startActivities = [](const char* library) {
        if (std::strcmp(library, "taken") == 0)
            return fault("another profiler is attached");
        const std::lock_guard lock(recording().mutex);
        recording().running = true;
        return 0;
    };
    t.flushActivities = [](PipewrightGpuActivities take, void* context, std::int64_t* dropped) {
        *dropped = 0;
        std::vector<PipewrightGpuActivity> activities;
        {
            const std::lock_guard lock(recording().mutex);
            activities.swap(recording().activities);
        }
        take(context, activities.data(), static_cast<std::int32_t>(activities.size()));
        return 0;
    };
    t.stopActivities = [] {
        const std::lock_guard lock(recording().mutex);
        recording().running = false;
        return 0;
    };
    t.ncclOpen = [](const char*) { return 0; };
    t.ncclConnect = [](std::int32_t from, std::int32_t to, void** sender, void** receiver) {
        const auto channel = std::make_shared<Channel>();
        *sender = new End{channel, from};
        *receiver = new End{channel, to};
        return from == to ? fault("NCCL does not connect a GPU with itself") : 0;
    };
    t.ncclSend = [](void* end, const void* data, std::int64_t bytes, void* on) {
        const End& sender = *static_cast<End*>(end);
        if (const int code = callsNccl(sender.device); code != 0)
            return code;
        stream(on).push([channel = sender.channel, data, bytes] {
            std::unique_lock lock(channel->mutex);
            channel->data = data;
            channel->bytes = bytes;
            channel->changed.notify_all();
            channel->changed.wait(lock, [&] { return channel->bytes < 0 || channel->aborted; });
        });
        return 0;
    };
    t.ncclReceive = [](void* end, void* data, std::int64_t bytes, void* on) {
        const End& receiver = *static_cast<End*>(end);
        if (const int code = callsNccl(receiver.device); code != 0)
            return code;
        stream(on).push([channel = receiver.channel, data, bytes] {
            std::unique_lock lock(channel->mutex);
            channel->changed.wait(lock, [&] { return channel->bytes >= 0 || channel->aborted; });
            if (channel->aborted)
                return;
            std::memcpy(data, channel->data, n(std::min(bytes, channel->bytes)));
            channel->bytes = -1;
            channel->changed.notify_all();
        });
        return 0;
    };
    t.ncclGroup = [](std::int32_t) { return 0; };
    t.ncclAbort = [](void* end) {
        const std::unique_ptr<End> owned(static_cast<End*>(end));
        const std::lock_guard lock(owned->channel->mutex);
        owned->channel->aborted = true;
        owned->channel->changed.notify_all();
        return 0;
    };
    t.ncclClose = [](void* end) { return delete static_cast<End*>(end), 0; };
}

inline void addMaths(PipewrightCudaTable& t)
{
    t.createMaths = [](std::int32_t, void* on, const char*, std::int32_t, void** maths) { return *maths = on, 0; };
    t.destroyMaths = [](void*) { return 0; };
    t.copyWithin = [](void* m, const void* from, void* to, std::int64_t bytes) {
        return pushKernel(stream(m), "copy", [=] { std::memcpy(to, from, n(bytes)); }), 0;
    };
    t.fill = [](void* m, float* values, std::int64_t count, float value) {
        return pushKernel(stream(m), "fill", [=] { host().fill(Values(values, n(count)), value); }), 0;
    };
    t.add = [](void* m, float* values, const float* addend, std::int64_t count) {
        return pushKernel(stream(m), "add", [=] { host().add(Values(values, n(count)), Read(addend, n(count))); }), 0;
    };
    t.linearForward = [](void* m, std::int32_t rows, std::int32_t inputs, std::int32_t outputs, const float* input,
                         const float* weight, const float* bias, float* output, std::int32_t adds) {
        pushKernel(stream(m), "linearForward", [=] {
            host().linearForward({rows, inputs, outputs}, Read(input, n(rows * inputs)),
                                 Read(weight, n(inputs * outputs)), Read(bias, bias ? n(outputs) : 0),
                                 Values(output, n(rows * outputs)),
                                 adds ? pipewright::kernels::Store::Add : pipewright::kernels::Store::Replace);
        });
        return 0;
    };
    t.linearInputGrad = [](void* m, std::int32_t rows, std::int32_t inputs, std::int32_t outputs, const float* dy,
                           const float* weight, float* dx) {
        pushKernel(stream(m), "linearInputGrad", [=] {
            host().linearInputGrad({rows, inputs, outputs}, Read(dy, n(rows * outputs)),
                                   Read(weight, n(inputs * outputs)), Values(dx, n(rows * inputs)));
        });
        return 0;
    };
    t.linearWeightGrad = [](void* m, std::int32_t rows, std::int32_t inputs, std::int32_t outputs, const float* x,
                            const float* dy, float* dw, float* db) {
        pushKernel(stream(m), "linearWeightGrad", [=] {
            host().linearWeightGrad({rows, inputs, outputs}, Read(x, n(rows * inputs)), Read(dy, n(rows * outputs)),
                                    Values(dw, n(inputs * outputs)), Values(db, db ? n(outputs) : 0));
        });
        return 0;
    };
    t.geluForward = [](void* m, const float* x, float* y, std::int64_t count) {
        return pushKernel(stream(m), "gelu", [=] { host().geluForward(Read(x, n(count)), Values(y, n(count))); }), 0;
    };
    t.geluInputGrad = [](void* m, const float* x, const float* dy, float* dx, std::int64_t count) {
        pushKernel(stream(m), "geluInputGrad",
                   [=] { host().geluInputGrad(Read(x, n(count)), Read(dy, n(count)), Values(dx, n(count))); });
        return 0;
    };
    t.layerNormForward = [](void* m, std::int32_t rows, std::int32_t columns, const float* x, const float* gamma,
                            const float* beta, float* y) {
        pushKernel(stream(m), "layerNorm", [=] {
            host().layerNormForward(rows, columns, Read(x, n(rows * columns)), Read(gamma, n(columns)),
                                    Read(beta, n(columns)), Values(y, n(rows * columns)));
        });
        return 0;
    };
    t.layerNormInputGrad = [](void* m, std::int32_t rows, std::int32_t columns, const float* x, const float* gamma,
                              const float* dy, float* dx) {
        pushKernel(stream(m), "layerNormInputGrad", [=] {
            host().layerNormInputGrad(rows, columns, Read(x, n(rows * columns)), Read(gamma, n(columns)),
                                      Read(dy, n(rows * columns)), Values(dx, n(rows * columns)));
        });
        return 0;
    };
    t.layerNormWeightGrad = [](void* m, std::int32_t rows, std::int32_t columns, const float* x, const float* dy,
                               float* dGamma, float* dBeta) {
        pushKernel(stream(m), "layerNormWeightGrad", [=] {
            host().layerNormWeightGrad(rows, columns, Read(x, n(rows * columns)), Read(dy, n(rows * columns)),
                                       Values(dGamma, n(columns)), Values(dBeta, n(columns)));
        });
        return 0;
    };
    t.embeddingForward = [](void* m, std::int64_t count, std::int32_t length, std::int32_t hidden,
                            const std::int32_t* tokens, const float* table, const float* positions, float* y) {
        pushKernel(stream(m), "embedding", [=] {
            const std::size_t words = n(*std::max_element(tokens, tokens + count)) + 1;
            host().embeddingForward(length, hidden, std::span(tokens, n(count)), Read(table, words * n(hidden)),
                                    Read(positions, n(length * hidden)), Values(y, n(count) * n(hidden)));
        });
        return 0;
    };
    t.embeddingWeightGrad = [](void* m, std::int64_t count, std::int32_t length, std::int32_t hidden,
                               const std::int32_t* tokens, const float* dy, float* table, std::int64_t tableCount,
                               float* positions) {
        pushKernel(stream(m), "embeddingWeightGrad", [=] {
            host().embeddingWeightGrad(length, hidden, std::span(tokens, n(count)), Read(dy, n(count) * n(hidden)),
                                       Values(table, n(tableCount)), Values(positions, n(length * hidden)));
        });
        return 0;
    };
    t.crossEntropyForward = [](void* m, std::int32_t rows, std::int32_t classes, float* values,
                               const std::int32_t* targets, float scale, float* loss) {
        pushKernel(stream(m), "crossEntropy", [=] {
            host().crossEntropyForward(rows, classes, Values(values, n(rows * classes)), std::span(targets, n(rows)),
                                       scale, Values(loss, 1));
        });
        return 0;
    };
    t.crossEntropyInputGrad = [](void* m, std::int32_t rows, std::int32_t classes, const float* p,
                                 const std::int32_t* targets, float scale, float* grad) {
        pushKernel(stream(m), "crossEntropyInputGrad", [=] {
            host().crossEntropyInputGrad(rows, classes, Read(p, n(rows * classes)), std::span(targets, n(rows)), scale,
                                         Values(grad, n(rows * classes)));
        });
        return 0;
    };
    t.attentionForward = [](void* m, const PipewrightCudaAttention* plain, const float* q, const float* k,
                            const float* v, float* saved, float* y) {
        pushKernel(stream(m), "attention", [=, shape = whole(*plain)] {
            const std::size_t all = shape.tokens() * n(shape.hidden());
            host().attentionForward(shape, Read(q, all), Read(k, all), Read(v, all), Values(saved, shape.scores()),
                                    Values(y, all), {});
        });
        return 0;
    };
    t.attentionInputGrad = [](void* m, const PipewrightCudaAttention* plain, const float* q, const float* k,
                              const float* v, const float* saved, const float* y, const float* dy, float* grad,
                              float* scratch) {
        pushKernel(stream(m), "attentionInputGrad", [=, shape = whole(*plain)] {
            const std::size_t all = shape.tokens() * n(shape.hidden());
            host().attentionInputGrad(shape, Read(q, all), Read(k, all), Read(v, all), Read(saved, shape.scores()),
                                      Read(y, all), Read(dy, all), Values(grad, 3 * all),
                                      Values(scratch, shape.scores()), {}, {});
        });
        return 0;
    };
    t.sgdMomentumStep = [](void* m, float rate, float momentum, float decay, float* p, const float* g, float* v,
                           std::int64_t count) {
        pushKernel(stream(m), "sgd", [=] {
            host().sgdMomentumStep({rate, momentum, decay}, Values(p, n(count)), Read(g, n(count)),
                                   Values(v, n(count)));
        });
        return 0;
    };
    t.adamWStep = [](void* m, float rate, float beta1, float beta2, float epsilon, float decay, std::int32_t step,
                     float* p, const float* g, float* first, float* second, std::int64_t count) {
        pushKernel(stream(m), "adamW", [=] {
            host().adamWStep({rate, beta1, beta2, epsilon, decay}, step, Values(p, n(count)), Read(g, n(count)),
                             Values(first, n(count)), Values(second, n(count)));
        });
        return 0;
    };
    t.rmsPropStep = [](void* m, float rate, float smoothing, float epsilon, float* p, const float* g, float* squares,
                       float* last, std::int64_t count) {
        pushKernel(stream(m), "rmsProp", [=] {
            host().rmsPropStep({rate, smoothing, epsilon}, Values(p, n(count)), Read(g, n(count)),
                               Values(squares, n(count)), Values(last, n(count)));
        });
        return 0;
    };
    t.predictMomentum = [](void* m, float distance, const float* v, float* p, std::int64_t count) {
        pushKernel(stream(m), "predict",
                   [=] { host().predictMomentum(distance, Read(v, n(count)), Values(p, n(count))); });
        return 0;
    };
    t.predictRmsProp = [](void* m, float distance, float epsilon, const float* squares, const float* last, float* p,
                          std::int64_t count) {
        pushKernel(stream(m), "predict", [=] {
            host().predictRmsProp(distance, epsilon, Read(squares, n(count)), Read(last, n(count)),
                                  Values(p, n(count)));
        });
        return 0;
    };
    t.predictAdam = [](void* m, float beta1, float beta2, float epsilon, std::int32_t step, float distance,
                       const float* first, const float* second, float* p, std::int64_t count) {
        pushKernel(stream(m), "predict", [=] {
            host().predictAdam({.beta1 = beta1, .beta2 = beta2, .epsilon = epsilon}, step, distance,
                               Read(first, n(count)), Read(second, n(count)), Values(p, n(count)));
        });
        return 0;
    };
}

inline const PipewrightCudaTable& table()
{
    static const PipewrightCudaTable made = [] {
        PipewrightCudaTable t{};
        addHardware(t);
        addTools(t);
        addMaths(t);
        return t;
    }();
    return made;
}

} // namespace pretended
