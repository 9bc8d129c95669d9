// SPDX-License-Identifier: GPL-3.0-or-later
// NVTX ranges and CUPTI. CUPTI is opened by name and used for one session per process: later sessions of its 13.0 have
// wrong correlations. It enables activities only: concurrent kernels, but not whole-graph records, which would hide the
// kernels of captured blocks; of the runtime's calls those that launch something, and no waits. Buffers are zeroed and
// reused after they were read.
#include "executor/cuda/plugin/cuptirecords.h"
#include "executor/cuda/plugin/plugin.h"

#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace pipewright::plugin {

namespace {

#define PIPEWRIGHT_CUPTI(use)                                                                                          \
    use(cuptiGetResultString) use(cuptiSubscribe) use(cuptiUnsubscribe) use(cuptiActivityRegisterCallbacks)            \
        use(cuptiActivityRegisterTimestampCallback) use(cuptiActivityEnable) use(cuptiActivityDisable)                 \
            use(cuptiActivityFlushAll) use(cuptiActivityGetNextRecord) use(cuptiActivityGetNumDroppedRecords)          \
                use(cuptiActivityPushExternalCorrelationId) use(cuptiActivityPopExternalCorrelationId)                 \
                    use(cuptiGetCallbackName) use(cuptiActivitySetAttribute)

/// A function of CUPTI in CUDA 12.9 that CUDA 12.4 lacks, as cupti_activity.h declares it.
using EnableCall = CUptiResult(CUpti_CallbackId call, uint8_t enable);
#if CUPTI_API_VERSION >= 28
static_assert(std::is_same_v<EnableCall, decltype(cuptiActivityEnableRuntimeApi)>);
#endif

struct Cupti {
#define PIPEWRIGHT_DECLARE(name) decltype(&::name) name = nullptr;
    PIPEWRIGHT_CUPTI(PIPEWRIGHT_DECLARE)
#undef PIPEWRIGHT_DECLARE
    EnableCall* enableRuntimeCall = nullptr; ///< null where the library is too old for it

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
            *buffer = static_cast<uint8_t*>(std::calloc(bufferBytes, 1)); // aligned to 16 bytes
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
    /// Zeroes them first.
    void giveBack(const std::vector<CuptiRecords::Buffer>& buffers)
    {
        for (const CuptiRecords::Buffer& buffer : buffers)
            std::memset(buffer.data, 0, bufferBytes);
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

/// Whether a call of the runtime, named as cuptiGetCallbackName does, makes a GPU do something that is recorded. Of all
/// others a record, with its label, would cost the host time for nothing.
bool launches(std::string_view call)
{
    for (const std::string_view each : {"Launch", "Memcpy", "Memset"})
        if (call.find(each) != call.npos)
            return true;
    return false;
}

/// After the kind of all calls, which overrides it. The others are left out one by one, which the header proposes for a
/// few: its other way, enabling single calls without their kind, recorded no call of the driver on an H100
/// (CUPTI 13.0).
int recordOnlyLaunches(const Cupti& cupti)
{
    int code = 0;
    for (CUpti_CallbackId call = 1; call < CUPTI_RUNTIME_TRACE_CBID_SIZE && code == 0; ++call)
        if (const char* name = nullptr;
            cupti.cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, call, &name) == CUPTI_SUCCESS && name
            && !launches(name)) // without a name: this library has no such call
            code = cupti.check(cupti.enableRuntimeCall(call, 0), "cuptiActivityEnableRuntimeApi");
    return code;
}

/// All but the subscription.
int enable(const Cupti& cupti)
{
    int code =
        cupti.check(cupti.cuptiActivityRegisterTimestampCallback(hostTime), "cuptiActivityRegisterTimestampCallback");
    // Else CUPTI zeroes each buffer when a thread's launch begins it, amid a step. A library that does not know the
    // attribute goes on doing so.
    uint8_t zeroed = 1;
    size_t size = sizeof zeroed;
    cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
    code = code ? code
                : cupti.check(cupti.cuptiActivityRegisterCallbacks(requestBuffer, completeBuffer),
                              "cuptiActivityRegisterCallbacks");
    for (const CUpti_ActivityKind kind : kinds)
        code = code ? code : cupti.check(cupti.cuptiActivityEnable(kind), "cuptiActivityEnable");
    if (cupti.enableRuntimeCall)
        code = code ? code : recordOnlyLaunches(cupti);
    return code;
}

/// After this CUPTI records nothing, and another profiler may subscribe.
int disable(const Cupti& cupti, CUpti_SubscriberHandle subscriber)
{
    for (const CUpti_ActivityKind kind : kinds)
        cupti.cuptiActivityDisable(kind);
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

const char* recorderNote()
{
    const Session& only = session();
    return only.running && !only.cupti.enableRuntimeCall ? "this CUPTI is older than that of CUDA 12.9: it records "
                                                           "every call of the runtime, not only launches, which "
                                                           "makes recorded steps slower"
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
    table.recorderNote = recorderNote;
    table.flushActivities = flushActivities;
    table.stopActivities = stopActivities;
}

} // namespace pipewright::plugin
