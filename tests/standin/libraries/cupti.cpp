// SPDX-License-Identifier: GPL-3.0-or-later
// libcupti: activity records of what the stand-in GPUs do, in the client's buffers. Times are of the client's clock or,
// when it registered none, of another one than the program's. Streams are numbered within each context, so green
// contexts have the same numbers. Rules from cupti_activity.h of CUDA 13.0.
#include "engine.h"
#include "green.h"
#include "machine.h"
#include "observer.h"
#include "recordsizes.h"
#include "toolkit.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <cupti.h>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace standin;

namespace {

struct Named {
    std::string_view name;
    CUpti_CallbackId number;
    const char* text;
};
#define NAMED(domain, name, version)                                                                                   \
    {                                                                                                                  \
#name, CUPTI_##domain##_TRACE_CBID_##name##version, #name #version                                             \
    }
constexpr Named runtimeCalls[] = {NAMED(RUNTIME, cudaLaunchKernel, _v7000),
                                  NAMED(RUNTIME, cudaMemcpyAsync, _v3020),
                                  NAMED(RUNTIME, cudaMemcpyPeerAsync, _v4000),
                                  NAMED(RUNTIME, cudaMemsetAsync, _v3020),
                                  NAMED(RUNTIME, cudaGraphLaunch, _v10000),
                                  NAMED(RUNTIME, cudaEventQuery, _v3020),
                                  NAMED(RUNTIME, cudaEventRecord, _v3020),
                                  NAMED(RUNTIME, cudaStreamQuery, _v3020),
                                  NAMED(RUNTIME, cudaStreamWaitEvent, _v3020),
                                  NAMED(RUNTIME, cudaMalloc, _v3020),
                                  NAMED(RUNTIME, cudaFree, _v3020),
                                  NAMED(RUNTIME, cudaMemcpy, _v3020),
                                  NAMED(RUNTIME, cudaSetDevice, _v3020),
                                  NAMED(RUNTIME, cudaGetDevice, _v3020),
                                  NAMED(RUNTIME, cudaEventElapsedTime, _v3020)};
constexpr Named driverCalls[] = {{"cuLaunchKernelEx", CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, "cuLaunchKernelEx"}};
#undef NAMED

CUpti_CallbackId numberOf(Domain domain, std::string_view name)
{
    if (domain == Domain::Runtime) {
        for (const Named& each : runtimeCalls)
            if (each.name == name)
                return each.number;
    } else {
        for (const Named& each : driverCalls)
            if (each.name == name)
                return each.number;
    }
    return 0;
}

thread_local std::map<CUpti_ExternalCorrelationKind, std::vector<std::uint64_t>> external;

class Recorder final : public Observer {
public:
    CUpti_BuffersCallbackRequestFunc request = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete = nullptr;
    CUpti_TimestampCallbackFunc clock = nullptr;
    std::set<CUpti_ActivityKind> kinds;
    std::set<CUpti_CallbackId> notRuntime; ///< disabled individually
    bool allSyncRecords = true;            ///< cupti_activity.h:8257, "By default"
    bool subscribed = false;
    bool clientZeroes = false;  ///< buffers; cupti_activity.h:7141, "The default value is 0"
    std::recursive_mutex mutex; ///< guards this object; held while callbacks are called

    void entered(Domain domain, const char* name, std::uint32_t correlation) override
    {
        const std::lock_guard lock(mutex);
        if (!sees(domain, name) || !kinds.contains(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
            return;
        // cupti_activity.h:8012, the record of a call "will be preceded by" one for each kind.
        for (const auto& [kind, ids] : external)
            if (!ids.empty()) {
                CUpti_ActivityExternalCorrelation record{};
                record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
                record.externalKind = kind;
                record.externalId = ids.back();
                record.correlationId = correlation;
                count("records of labels");
                write(record);
                m_labelled.insert(correlation);
            }
    }
    void left(Domain domain, const char* name, std::uint32_t correlation, std::int64_t start, std::int64_t end) override
    {
        const std::lock_guard lock(mutex);
        if (!sees(domain, name))
            return;
        CUpti_ActivityAPI record{};
        record.kind = domain == Domain::Runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
        record.cbid = numberOf(domain, name);
        record.start = time(start);
        record.end = time(end);
        record.processId = static_cast<std::uint32_t>(::getpid());
        record.threadId = static_cast<std::uint32_t>(::gettid());
        record.correlationId = correlation;
        count(std::string("call records of ") + name);
        write(record);
    }
    void happened(const Activity& activity) override
    {
        const std::lock_guard lock(mutex);
        count("records of what ran");
        switch (activity.kind) {
        case Activity::Kernel: {
            auto record = onStream<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, activity);
            record.name = names.insert(activity.name).first->c_str();
            if (!m_labelled.contains(activity.correlation))
                count("kernels without a label: " + activity.name);
            if (failsNow("untimed"))
                record.start = record.end = CUPTI_TIMESTAMP_UNKNOWN;
            return writeIfEnabled(record);
        }
        case Activity::Copy: {
            auto record = onStream<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, activity);
            record.bytes = activity.bytes;
            record.copyKind = activity.fromDevice < 0 ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
                              : activity.toDevice < 0 ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                                                      : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
            return writeIfEnabled(record);
        }
        case Activity::PeerCopy: {
            auto record = onStream<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, activity);
            record.bytes = activity.bytes;
            record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
            record.srcDeviceId = static_cast<std::uint32_t>(activity.fromDevice);
            record.dstDeviceId = static_cast<std::uint32_t>(activity.toDevice);
            return writeIfEnabled(record);
        }
        case Activity::Set: {
            auto record = onStream<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, activity);
            record.bytes = activity.bytes;
            return writeIfEnabled(record);
        }
        }
    }
    void synchronized(const Synchronization& what) override
    {
        const std::lock_guard lock(mutex);
        // cupti_activity.h:8252, queries of events that have not happened can be left out.
        const bool asks = what.kind == Synchronization::EventQuery || what.kind == Synchronization::StreamQuery;
        if (asks && what.result != 0 && !allSyncRecords)
            return;
        CUpti_ActivitySynchronization2 record{};
        record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
        record.type = what.kind == Synchronization::EventQuery ? CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE
                                                               : CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
        record.start = time(what.start);
        record.end = time(what.end);
        record.correlationId = what.correlation;
        record.contextId = what.context;
        record.streamId = what.stream ? streamNumber(what.context, what.stream)
                                      : static_cast<std::uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
        record.returnValue = static_cast<std::uint32_t>(what.result);
        if (kinds.contains(record.kind))
            count(what.result == 0 ? "synchronization records" : "synchronization records of what had not happened");
        writeIfEnabled(record);
    }
    void allocated(int device, std::int64_t bytes, void* place, std::uint32_t correlation) override
    {
        const std::lock_guard lock(mutex);
        CUpti_ActivityMemory4 record{};
        record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
        record.memoryOperationType =
            bytes > 0 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
        record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        record.correlationId = correlation;
        record.address = reinterpret_cast<std::uint64_t>(place);
        record.bytes = static_cast<std::uint64_t>(bytes > 0 ? bytes : -bytes);
        timespec present{};
        clock_gettime(CLOCK_MONOTONIC, &present);
        record.timestamp = time(std::int64_t{present.tv_sec} * 1'000'000'000 + present.tv_nsec);
        record.deviceId = static_cast<std::uint32_t>(device);
        record.contextId = static_cast<std::uint32_t>(device) + 1;
        writeIfEnabled(record);
    }
    void contextMade(std::uint32_t context, int device, std::uint32_t parent, int multiprocessors) override
    {
        const std::lock_guard lock(mutex);
        CUpti_ActivityContext3 record{};
        record.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
        record.contextId = context;
        record.deviceId = static_cast<std::uint32_t>(device);
        record.parentContextId = parent;
        record.isGreenContext = parent != 0;
        record.numMultiprocessors = static_cast<std::uint16_t>(multiprocessors);
        writeIfEnabled(record);
    }

    void flush()
    {
        const std::lock_guard lock(mutex);
        if (!m_buffer)
            return;
        const std::int64_t start = now();
        complete(nullptr, 0, std::exchange(m_buffer, nullptr), m_size, m_used);
        m_size = m_used = 0;
        m_flushes.emplace_back(start, now());
    }
    std::size_t takeDropped()
    {
        const std::lock_guard lock(mutex);
        return std::exchange(m_dropped, 0);
    }

private:
    bool sees(Domain domain, const char* name) const
    {
        if (domain == Domain::Runtime)
            return kinds.contains(CUPTI_ACTIVITY_KIND_RUNTIME) && !notRuntime.contains(numberOf(domain, name));
        return kinds.contains(CUPTI_ACTIVITY_KIND_DRIVER);
    }
    std::uint64_t time(std::int64_t monotonic) const
    {
        if (clock)
            return static_cast<std::uint64_t>(monotonic); // the program's own, which is this one
        timespec real{}, steady{};
        clock_gettime(CLOCK_REALTIME, &real);
        clock_gettime(CLOCK_MONOTONIC, &steady);
        return static_cast<std::uint64_t>(monotonic + (real.tv_sec - steady.tv_sec) * 1'000'000'000);
    }
    std::uint32_t streamNumber(std::uint32_t context, std::uint32_t stream)
    {
        auto& numbers = m_streams[context];
        return numbers.try_emplace(stream, static_cast<std::uint32_t>(13 + numbers.size())).first->second;
    }
    template<typename Record>
    Record onStream(CUpti_ActivityKind kind, const Activity& activity)
    {
        Record record{};
        record.kind = kind;
        record.start = time(activity.start);
        record.end = time(activity.end);
        record.deviceId = activity.device;
        record.contextId = activity.context;
        record.streamId = streamNumber(activity.context, activity.stream);
        record.correlationId = activity.correlation;
        record.graphNodeId = activity.graphNode;
        return record;
    }
    template<typename Record>
    void writeIfEnabled(const Record& record)
    {
        if (kinds.contains(record.kind))
            write(record);
    }
    /// cupti_activity.h:752 and 4401: delivering buffers is itself recorded, without a call.
    void writeFlushes()
    {
        for (const auto& [start, end] : std::exchange(m_flushes, {})) {
            CUpti_ActivityOverhead3 record{};
            record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
            record.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
            record.objectKind = CUPTI_ACTIVITY_OBJECT_PROCESS;
            record.objectId.pt.processId = static_cast<std::uint32_t>(::getpid());
            record.start = time(start);
            record.end = time(end);
            count("records of flushes");
            writeIfEnabled(record);
        }
    }
    template<typename Record>
    void write(const Record& record)
    {
        count("activity records");
        const std::size_t bytes = sizeOf(record.kind, toolkit);
        if (m_buffer && m_used + bytes > m_size)
            flush();
        if (!m_buffer) {
            std::size_t most = 0;
            request(&m_buffer, &m_size, &most);
            m_used = 0;
            if (!m_buffer || m_size < bytes) {
                m_buffer = nullptr;
                ++m_dropped;
                return;
            }
            // cupti_activity.h:7130, a client that said so "should provide a zero value buffer".
            if (!clientZeroes) {
                std::memset(m_buffer, 0, m_size);
                count("buffers of records zeroed amid calls");
            } else if (std::any_of(m_buffer, m_buffer + m_size, [](std::uint8_t byte) { return byte != 0; })) {
                broken("a buffer of records was not zero", "cupti_activity.h:7130");
            }
            writeFlushes();
        }
        std::memcpy(m_buffer + m_used, &record, bytes);
        m_used += bytes;
    }

    std::uint8_t* m_buffer = nullptr;
    std::size_t m_size = 0, m_used = 0, m_dropped = 0;
    std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> m_streams;
    std::set<std::string> names;
    std::vector<std::pair<std::int64_t, std::int64_t>> m_flushes; ///< not recorded yet
    std::set<std::uint32_t> m_labelled;                           ///< calls for which an external id was written
};

Recorder& recorder()
{
    static Recorder& only = *new Recorder;
    return only;
}

} // namespace

extern "C" {

CUptiResult cuptiGetResultString(CUptiResult result, const char** text)
{
    *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS"
            : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
            : result == CUPTI_ERROR_NOT_COMPATIBLE    ? "CUPTI_ERROR_NOT_COMPATIBLE"
            : result == CUPTI_ERROR_INVALID_PARAMETER ? "CUPTI_ERROR_INVALID_PARAMETER"
            : result == CUPTI_ERROR_QUEUE_EMPTY       ? "CUPTI_ERROR_QUEUE_EMPTY"
                                                      : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*)
{
    if (std::exchange(recorder().subscribed, true))
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    hold("CUPTI subscriptions", 1);
    *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&recorder());
    return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle)
{
    if (!std::exchange(recorder().subscribed, false))
        return CUPTI_ERROR_INVALID_PARAMETER;
    hold("CUPTI subscriptions", -1);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock)
{
    if (observer.load())
        broken("the clock was registered after an activity was enabled", "cupti_activity.h, at its declaration");
    recorder().clock = clock;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete)
{
    if (!request || !complete)
        return CUPTI_ERROR_INVALID_PARAMETER;
    recorder().request = request;
    recorder().complete = complete;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if (failsNow("cupti"))
        return CUPTI_ERROR_NOT_COMPATIBLE;
    if (!recorder().request) {
        broken("an activity was enabled before there were buffers", "cupti_activity.h, cuptiActivityRegisterCallbacks");
        return CUPTI_ERROR_UNKNOWN;
    }
    {
        const std::lock_guard lock(recorder().mutex);
        recorder().kinds.insert(kind);
        if (kind == CUPTI_ACTIVITY_KIND_RUNTIME)
            recorder().notRuntime.clear();
    }
    hold("CUPTI activities", 1);
    observer = &recorder();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
    if (const CUptiResult result = cuptiActivityEnable(kind); result != CUPTI_SUCCESS)
        return result;
    if (kind == CUPTI_ACTIVITY_KIND_CONTEXT)
        for (const ContextMade& made : contextsSoFar())
            recorder().contextMade(made.context, made.device, made.parent, made.multiprocessors);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    const std::lock_guard lock(recorder().mutex);
    hold("CUPTI activities", -static_cast<long>(recorder().kinds.erase(kind)));
    return CUPTI_SUCCESS;
}

/// On an H100 the CUPTI of CUDA 13.0 took this and recorded none of the calls, whatever its header says.
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId, std::uint8_t)
{
    return CUPTI_SUCCESS;
}

/// Single calls of an enabled kind can be left out (cupti_activity.h:8199); enabling the kind later overrides that.
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId call, std::uint8_t enable)
{
    const std::lock_guard lock(recorder().mutex);
    if (enable)
        recorder().notRuntime.erase(call);
    else
        recorder().notRuntime.insert(call);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableAllSyncRecords(std::uint8_t enable)
{
    recorder().allSyncRecords = enable != 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, std::size_t* size, void* value)
{
    if (!size || !value || attribute != CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (*size < sizeof(std::uint8_t))
        return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
    const std::lock_guard lock(recorder().mutex);
    recorder().clientZeroes = *static_cast<const std::uint8_t*>(value) != 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t)
{
    recorder().flush();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record)
{
    if (!buffer || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;
    std::size_t at = 0;
    if (*record)
        at = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer)
             + sizeOf((*record)->kind, toolkit);
    if (at >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(buffer + at);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped)
{
    *dropped = recorder().takeDropped();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t id)
{
    external[kind].push_back(id);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t* last)
{
    if (external[kind].empty())
        return CUPTI_ERROR_QUEUE_EMPTY;
    if (last)
        *last = external[kind].back();
    external[kind].pop_back();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t call, const char** name)
{
    *name = nullptr;
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
        for (const Named& each : runtimeCalls)
            if (each.number == call)
                *name = each.text;
    } else {
        for (const Named& each : driverCalls)
            if (each.number == call)
                *name = each.text;
    }
    return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

} // extern "C"
