// SPDX-License-Identifier: GPL-3.0-or-later
// NVTX ranges and CUPTI. CUPTI is opened by name and used for one session per process: later sessions of its 13.0 have
// wrong correlations. It enables activities only: concurrent kernels, but not whole-graph records, which would hide the
// kernels of captured blocks. Buffers are reused after they were read.
#include "executor/cuda/plugin/cuptirecords.h"
#include "executor/cuda/plugin/plugin.h"

#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace pipewright::plugin {

namespace {

#define PIPEWRIGHT_CUPTI(use)                                                                                          \
    use(cuptiGetResultString) use(cuptiSubscribe) use(cuptiUnsubscribe) use(cuptiActivityRegisterCallbacks)            \
        use(cuptiActivityRegisterTimestampCallback) use(cuptiActivityEnable) use(cuptiActivityEnableAndDump)           \
            use(cuptiActivityDisable) use(cuptiActivityFlushAll) use(cuptiActivityGetNextRecord)                       \
                use(cuptiActivityGetNumDroppedRecords) use(cuptiActivityPushExternalCorrelationId)                     \
                    use(cuptiActivityPopExternalCorrelationId) use(cuptiGetCallbackName)

/// Functions of CUPTI in CUDA 12.9 that CUDA 12.4 lacks, as cupti_activity.h declares them.
using EnableCall = CUptiResult(CUpti_CallbackId call, uint8_t enable);
using EnableRecords = CUptiResult(uint8_t enable);
#if CUPTI_API_VERSION >= 28
static_assert(std::is_same_v<EnableCall, decltype(cuptiActivityEnableRuntimeApi)>);
static_assert(std::is_same_v<EnableRecords, decltype(cuptiActivityEnableAllSyncRecords)>);
#endif

struct Cupti {
#define PIPEWRIGHT_DECLARE(name) decltype(&::name) name = nullptr;
    PIPEWRIGHT_CUPTI(PIPEWRIGHT_DECLARE)
#undef PIPEWRIGHT_DECLARE
    // Null where the library is too old for them.
    EnableCall* enableRuntimeCall = nullptr;
    EnableRecords* enableAllSyncRecords = nullptr;

    int check(CUptiResult code, const char* what) const
    {
        if (code == CUPTI_SUCCESS)
            return 0;
        const char* text = nullptr;
        cuptiGetResultString(code, &text);
        const bool taken = code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
        return fault(std::string(what) + ": " + (text ? text : "unknown error")
                     + (taken ? " (another profiler is attached to this process)" : ""));
    }
};

constexpr size_t bufferBytes = size_t{4} << 20;
constexpr size_t bufferAlignment = 8;
constexpr size_t mostBuffers = 32; ///< 128 MiB; after that CUPTI drops records, and counts them

/// CUPTI calls back on threads of its own, so shared data has a mutex, which is never held while CUPTI is called.
class Session {
public:
    Cupti cupti;
    std::optional<CuptiRecords> records;
    CUpti_SubscriberHandle subscriber = nullptr;
    bool running = false;

    void request(uint8_t** buffer, size_t* size, size_t* most)
    {
        const std::lock_guard lock(m_mutex);
        *most = 0;
        *size = bufferBytes;
        *buffer = nullptr;
        if (!m_free.empty()) {
            *buffer = m_free.back();
            m_free.pop_back();
        } else if (m_made < mostBuffers) {
            *buffer = static_cast<uint8_t*>(std::aligned_alloc(bufferAlignment, bufferBytes));
            m_made += *buffer != nullptr;
        }
        *size = *buffer ? bufferBytes : 0;
    }
    void complete(uint8_t* buffer, size_t valid)
    {
        const std::lock_guard lock(m_mutex);
        m_full.push_back({buffer, valid});
    }
    std::vector<CuptiRecords::Buffer> takeFull()
    {
        const std::lock_guard lock(m_mutex);
        return std::exchange(m_full, {});
    }
    void giveBack(const std::vector<CuptiRecords::Buffer>& buffers)
    {
        const std::lock_guard lock(m_mutex);
        for (const CuptiRecords::Buffer& buffer : buffers)
            m_free.push_back(buffer.data);
    }

private:
    std::mutex m_mutex; ///< guards what follows
    std::vector<uint8_t*> m_free;
    std::vector<CuptiRecords::Buffer> m_full;
    size_t m_made = 0;
};

/// Never destroyed: CUPTI may call back until the process ends.
Session& session()
{
    static Session& only = *new Session;
    return only;
}

void CUPTIAPI requestBuffer(uint8_t** buffer, size_t* size, size_t* most)
{
    session().request(buffer, size, most);
}

void CUPTIAPI completeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid)
{
    session().complete(buffer, valid);
}

/// The clock of steadyNow().
uint64_t CUPTIAPI hostTime()
{
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void CUPTIAPI ignoreCallback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

/// CUPTI writes a block's number next to the record of the launching call (cupti_activity.h, at
/// cuptiActivityPushExternalCorrelationId). cuBLASLt launches some kernels through the driver, so its calls are
/// recorded too: those that no call of the runtime makes, and of these all, since cuptiActivityEnableDriverApi() for
/// the launches alone recorded nothing on an H100 (CUPTI 13.0).
constexpr CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMCPY2,
                                        CUPTI_ACTIVITY_KIND_MEMSET,
                                        CUPTI_ACTIVITY_KIND_MEMORY2,
                                        CUPTI_ACTIVITY_KIND_OVERHEAD,
                                        CUPTI_ACTIVITY_KIND_RUNTIME,
                                        CUPTI_ACTIVITY_KIND_DRIVER};

/// Queries that are called thousands of times in a step and launch nothing.
constexpr CUpti_CallbackId questions[] = {CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020,
                                          CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020};

/// All but the subscription.
int enable(const Cupti& cupti)
{
    int code =
        cupti.check(cupti.cuptiActivityRegisterTimestampCallback(hostTime), "cuptiActivityRegisterTimestampCallback");
    code = code ? code
                : cupti.check(cupti.cuptiActivityRegisterCallbacks(requestBuffer, completeBuffer),
                              "cuptiActivityRegisterCallbacks");
    for (const CUpti_ActivityKind kind : kinds)
        code = code ? code : cupti.check(cupti.cuptiActivityEnable(kind), "cuptiActivityEnable");
    if (cupti.enableRuntimeCall)
        for (const CUpti_CallbackId question : questions) // after the kind of all calls, which overrides it
            code = code ? code : cupti.check(cupti.enableRuntimeCall(question, 0), "cuptiActivityEnableRuntimeApi");
    // Records only event queries that found the event done, not all. If CUPTI cannot restrict this, waits are not
    // recorded.
    if (cupti.enableAllSyncRecords) {
        code = code
                   ? code
                   : cupti.check(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), "cuptiActivityEnable");
        code = code ? code : cupti.check(cupti.enableAllSyncRecords(0), "cuptiActivityEnableAllSyncRecords");
    }
    // Existing contexts are dumped, to learn which GPU each belongs to.
    return code ? code
                : cupti.check(cupti.cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT),
                              "cuptiActivityEnableAndDump");
}

/// After this CUPTI records nothing, and another profiler may subscribe.
int disable(const Cupti& cupti, CUpti_SubscriberHandle subscriber)
{
    for (const CUpti_ActivityKind kind : kinds)
        cupti.cuptiActivityDisable(kind);
    cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONTEXT);
    if (cupti.enableAllSyncRecords)
        cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    return cupti.check(cupti.cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");
}

int startActivities(const char* path)
{
    Session& only = session();
    Cupti& cupti = only.cupti;
    if (only.records)
        return fault("this process has recorded already: CUPTI is used for one session per process");
    if (path[0] != '/')
        return fault(std::string(path) + " is not an absolute path");
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL); // never closed: CUDA does not like that
    if (!library)
        return fault(dlerror());
#define PIPEWRIGHT_LOAD(name)                                                                                          \
    if (cupti.name = reinterpret_cast<decltype(cupti.name)>(dlsym(library, #name)); !cupti.name)                       \
        return fault(std::string(path) + " has no " #name);
    PIPEWRIGHT_CUPTI(PIPEWRIGHT_LOAD)
#undef PIPEWRIGHT_LOAD
    const auto newer = [library](auto*& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    newer(cupti.enableRuntimeCall, "cuptiActivityEnableRuntimeApi");
    newer(cupti.enableAllSyncRecords, "cuptiActivityEnableAllSyncRecords");
    // Subscribe first: it fails at once when another profiler is active.
    if (const int code = cupti.check(cupti.cuptiSubscribe(&only.subscriber, ignoreCallback, nullptr), "cuptiSubscribe");
        code != 0)
        return code;
    only.records.emplace(cupti.cuptiActivityGetNextRecord, cupti.cuptiGetCallbackName);
    if (enable(cupti) == 0) {
        only.running = true;
        return 0;
    }
    const std::string why = lastError();
    disable(cupti, only.subscriber);
    return fault(why);
}

const char* unrecorded()
{
    const Session& only = session();
    return only.running && !only.cupti.enableAllSyncRecords
               ? "this CUPTI is older than that of CUDA 12.9: how long the host waited is not recorded"
               : nullptr;
}

int flushActivities(PipewrightGpuActivities take, void* context, int64_t* dropped, int64_t* untimed)
{
    Session& only = session();
    *dropped = *untimed = 0;
    if (!only.running)
        return fault("nothing is being recorded");
    // Forced, to include buffers that are not full. The devices are idle between steps, so all their records are
    // complete.
    if (const int code = only.cupti.check(only.cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
                                          "cuptiActivityFlushAll");
        code != 0)
        return code;
    size_t lost = 0;
    if (only.cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &lost) == CUPTI_SUCCESS)
        *dropped = static_cast<int64_t>(lost);
    const std::vector<CuptiRecords::Buffer> full = only.takeFull();
    std::vector<PipewrightGpuActivity> activities;
    const int64_t malformed = only.records->malformed(), earlier = only.records->untimed();
    only.records->read(full, activities);
    *dropped += only.records->malformed() - malformed;
    *untimed = only.records->untimed() - earlier;
    if (!activities.empty())
        take(context, activities.data(), static_cast<int32_t>(activities.size()));
    only.giveBack(full);
    return 0;
}

int stopActivities()
{
    Session& only = session();
    if (!only.running)
        return 0;
    only.running = false;
    return disable(only.cupti, only.subscriber);
}

int beginBlock(const char* label, int64_t block)
{
    nvtxRangePushA(label);
    Session& only = session();
    return only.running ? only.cupti.check(only.cupti.cuptiActivityPushExternalCorrelationId(
                                               CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, static_cast<uint64_t>(block)),
                                           "cuptiActivityPushExternalCorrelationId")
                        : 0;
}

int endBlock()
{
    Session& only = session();
    uint64_t last = 0;
    const int code = only.running ? only.cupti.check(only.cupti.cuptiActivityPopExternalCorrelationId(
                                                         CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last),
                                                     "cuptiActivityPopExternalCorrelationId")
                                  : 0;
    nvtxRangePop();
    return code;
}

} // namespace

void addRecorder(PipewrightCudaTable& table)
{
    nvtxInitialize(nullptr); // otherwise several threads would do it at the first blocks
    table.beginBlock = beginBlock;
    table.endBlock = endBlock;
    table.startActivities = startActivities;
    table.unrecorded = unrecorded;
    table.flushActivities = flushActivities;
    table.stopActivities = stopActivities;
}

} // namespace pipewright::plugin
