// SPDX-License-Identifier: GPL-3.0-or-later
// NCCL, opened by name. One communicator of two ranks per directed pair, both ranks in this process, so that nothing
// waits for the opposite direction or for another pair. Connections are made lazily by NCCL: each is warmed up when
// it is made. Few channels per transfer, since every one takes a multiprocessor away from the maths.
//
// A rank joins on a thread of its own, so that the caller can stop waiting; if the group never completes, that thread
// stays in NCCL until the process ends. A non-blocking communicator could be aborted while it is made, but stays
// non-blocking: every group of calls, and every call outside a group, then starts a thread and returns before anything
// is on the stream, so an event recorded after it would have to wait for ncclCommGetAsyncError. Only ncclCommSplit
// turns it into a blocking one, in another collective of all ranks that can hang like the first.
#include "executor/cuda/plugin/plugin.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace pipewright::plugin {

namespace {

#define PIPEWRIGHT_NCCL(use)                                                                                           \
    use(ncclGetVersion) use(ncclGetErrorString) use(ncclGetUniqueId) use(ncclCommInitRankConfig) use(ncclCommAbort)    \
        use(ncclCommDestroy) use(ncclSend) use(ncclRecv) use(ncclGroupStart) use(ncclGroupEnd) use(ncclAllReduce)      \
            use(ncclAllGather) use(ncclReduceScatter) use(ncclBroadcast) use(ncclReduce)

struct Nccl {
#define PIPEWRIGHT_DECLARE(name) decltype(&::name) name = nullptr;
    PIPEWRIGHT_NCCL(PIPEWRIGHT_DECLARE)
#undef PIPEWRIGHT_DECLARE

    int check(ncclResult_t code, const char* what) const
    {
        return code == ncclSuccess ? 0 : fault(std::string(what) + ": " + ncclGetErrorString(code));
    }
};

Nccl nccl; ///< opened once: a thread that still joins may use it when another backend opens it
std::mutex ncclOpening;
bool ncclIsOpen = false;

/// The result of a rank's joining thread. Without the other ranks NCCL never returns.
struct Joining {
    std::string why; ///< empty: it has joined
    ncclComm_t communicator = nullptr;
    std::atomic<bool> done{false}; ///< the two members above are set
};

struct End {
    End(int32_t gpu) : device(gpu) {}
    std::shared_ptr<Joining> joining = std::make_shared<Joining>();
    ncclComm_t communicator = nullptr; ///< set by ncclJoined() after the rank has joined
    const int32_t device;
    std::atomic<bool> aborted{false}; ///< the communicator must not be used any more
};

End& of(void* handle)
{
    return *static_cast<End*>(handle);
}

int ended()
{
    return fault("the connection was ended, because another device failed");
}

int ncclOpen(const char* path)
{
    if (path[0] != '/')
        return fault(std::string(path) + " is not an absolute path");
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL); // never closed: CUDA does not like that
    if (!library)
        return fault(dlerror());
    Nccl found;
#define PIPEWRIGHT_LOAD(name)                                                                                          \
    if (found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, #name)); !found.name)                       \
        return fault(std::string(path) + " has no " #name);
    PIPEWRIGHT_NCCL(PIPEWRIGHT_LOAD)
#undef PIPEWRIGHT_LOAD
    int version = 0;
    if (const int code = found.check(found.ncclGetVersion(&version), "ncclGetVersion"); code != 0)
        return code;
    if (version < NCCL_VERSION(NCCL_MAJOR, 0, 0))
        return fault(std::string(path) + " is version " + std::to_string(version) + ", older than this plugin knows");
    const std::lock_guard lock(ncclOpening);
    if (!std::exchange(ncclIsOpen, true))
        nccl = found;
    return 0;
}

int sendTo(void* member, int32_t rank, const void* data, int64_t bytes, void* on)
{
    if (of(member).aborted)
        return ended();
    return nccl.check(
        nccl.ncclSend(data, static_cast<size_t>(bytes), ncclChar, rank, of(member).communicator, stream(on)),
        "ncclSend");
}

int receiveFrom(void* member, int32_t rank, void* data, int64_t bytes, void* on)
{
    if (of(member).aborted)
        return ended();
    return nccl.check(
        nccl.ncclRecv(data, static_cast<size_t>(bytes), ncclChar, rank, of(member).communicator, stream(on)),
        "ncclRecv");
}

/// The two ends of a directed pair are its ranks 0 and 1.
int send(void* end, const void* data, int64_t bytes, void* on)
{
    return sendTo(end, 1, data, bytes, on);
}

int receive(void* end, void* data, int64_t bytes, void* on)
{
    return receiveFrom(end, 0, data, bytes, on);
}

int group(int32_t begin)
{
    return begin ? nccl.check(nccl.ncclGroupStart(), "ncclGroupStart")
                 : nccl.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
}

/// Memory and a stream of a GPU, for warming up.
struct Place {
    int make(int32_t gpu, int64_t bytes)
    {
        device = gpu;
        int code = makeCurrent(device);
        code = code ? code : check(cudaMalloc(&data, static_cast<size_t>(bytes)));
        code = code ? code : check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        // On that stream: cudaMemset goes to the legacy one, for which such a stream does not wait.
        return code ? code : check(cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), stream));
    }
    /// Call only when its work is done: cudaFree waits for the GPU.
    void release()
    {
        makeCurrent(device);
        if (stream)
            cudaStreamDestroy(stream);
        cudaFree(data);
    }
    int32_t device = 0;
    void* data = nullptr;
    cudaStream_t stream = nullptr;
};

using Clock = std::chrono::steady_clock;
constexpr auto pollInterval = std::chrono::microseconds(100);

/// Polls until `ask` sets its argument, returns an error, or `until` has passed.
template<typename Ask>
int await(Clock::time_point until, const char* what, Ask ask)
{
    for (int32_t done = 0;;) {
        if (const int code = ask(&done); code != 0 || done)
            return code;
        if (Clock::now() > until)
            return fault(std::string("the deadline has passed, and NCCL has not ") + what);
        std::this_thread::sleep_for(pollInterval);
    }
}

int await(Clock::time_point until, const Place& place)
{
    return await(until, "moved what connects its ranks",
                 [&](int32_t* done) { return answer(cudaStreamQuery(place.stream), done); });
}

/// Memory of work that is still in flight after the deadline is not released: aborting the communicator ends that work
/// later, when nothing checks for it any more.
int finish(std::span<Place> places, int code, Clock::time_point until)
{
    for (Place& place : places)
        code = code ? code : await(until, place);
    for (Place& place : places)
        if (code == 0)
            place.release();
    return code;
}

static_assert(sizeof(ncclUniqueId) == PIPEWRIGHT_NCCL_NAME);

int nameGroup(uint8_t* name)
{
    ncclUniqueId id{};
    const int code = nccl.check(nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::memcpy(name, &id, sizeof id);
    return code;
}

int join(int32_t device, const uint8_t* name, int32_t rank, int32_t ranks, int32_t multiprocessors, void** member)
{
    auto made = std::make_unique<End>(device);
    ncclUniqueId id{};
    std::memcpy(&id, name, sizeof id);
    // The thread shares ownership of its result and is never joined: NCCL may never return.
    const auto work = [joining = made->joining, id, device, rank, ranks, multiprocessors] {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        if (multiprocessors > 0)
            config.maxCTAs = multiprocessors;
        int code = makeCurrent(device);
        code = code ? code
                    : nccl.check(nccl.ncclCommInitRankConfig(&joining->communicator, ranks, id, rank, &config),
                                 "ncclCommInitRank");
        if (code != 0)
            joining->why = lastError();
        joining->done.store(true, std::memory_order_release);
    };
    try {
        std::thread(work).detach();
    } catch (const std::system_error& error) {
        return fault(std::string("no thread to join with: ") + error.what());
    }
    *member = made.release();
    return 0;
}

int joined(void* member, int32_t* all)
{
    End& end = of(member);
    *all = end.joining->done.load(std::memory_order_acquire);
    if (!*all)
        return 0;
    if (!end.joining->why.empty())
        return fault(end.joining->why);
    end.communicator = end.joining->communicator;
    return 0;
}

int abort(void* end)
{
    if (of(end).aborted.exchange(true) || !of(end).communicator)
        return 0;
    return nccl.check(nccl.ncclCommAbort(of(end).communicator), "ncclCommAbort");
}

int close(void* end)
{
    const std::unique_ptr<End> owned(&of(end));
    if (owned->aborted || !owned->communicator)
        return 0;
    return nccl.check(nccl.ncclCommDestroy(owned->communicator), "ncclCommDestroy");
}

/// One small and one large transfer: NCCL has a protocol for each.
int warmUp(void* sender, void* receiver, Clock::time_point until)
{
    constexpr int64_t large = 1 << 20;
    Place places[2];
    int code = places[0].make(of(sender).device, large);
    code = code ? code : places[1].make(of(receiver).device, large);
    for (const int64_t bytes : {int64_t{256}, large}) {
        code = code ? code : group(1);
        code = code ? code : send(sender, places[0].data, bytes, places[0].stream);
        code = code ? code : receive(receiver, places[1].data, bytes, places[1].stream);
        code = code ? code : group(0);
    }
    return finish(places, code, until);
}

int connect(int32_t from, int32_t to, int64_t deadline, void** sender, void** receiver)
{
    if (from == to)
        return fault("NCCL does not connect a GPU with itself");
    const auto until = Clock::now() + std::chrono::nanoseconds(deadline);
    uint8_t name[PIPEWRIGHT_NCCL_NAME];
    void* ends[2] = {};
    int code = nameGroup(name);
    for (const int32_t rank : {0, 1})
        code = code ? code : join(rank == 0 ? from : to, name, rank, 2, 4, &ends[rank]);
    for (void* end : ends)
        code = code ? code : await(until, "connected the two", [end](int32_t* done) { return joined(end, done); });
    code = code ? code : warmUp(ends[0], ends[1], until);
    if (code == 0) {
        *sender = ends[0];
        *receiver = ends[1];
        return 0;
    }
    const std::string why = lastError();
    for (void* end : ends)
        if (end) {
            abort(end);
            close(end);
        }
    return fault(why);
}

int allReduce(void* member, const float* from, float* to, int64_t count, void* on)
{
    if (of(member).aborted)
        return ended();
    return nccl.check(nccl.ncclAllReduce(from, to, static_cast<size_t>(count), ncclFloat, ncclSum,
                                         of(member).communicator, stream(on)),
                      "ncclAllReduce");
}

int allGather(void* member, const float* from, float* to, int64_t countOfEach, void* on)
{
    if (of(member).aborted)
        return ended();
    return nccl.check(
        nccl.ncclAllGather(from, to, static_cast<size_t>(countOfEach), ncclFloat, of(member).communicator, stream(on)),
        "ncclAllGather");
}

int reduceScatter(void* member, const float* from, float* to, int64_t countOfEach, void* on)
{
    if (of(member).aborted)
        return ended();
    return nccl.check(nccl.ncclReduceScatter(from, to, static_cast<size_t>(countOfEach), ncclFloat, ncclSum,
                                             of(member).communicator, stream(on)),
                      "ncclReduceScatter");
}

int broadcast(void* member, float* data, int64_t count, int32_t root, void* on)
{
    if (of(member).aborted)
        return ended();
    return nccl.check(nccl.ncclBroadcast(data, data, static_cast<size_t>(count), ncclFloat, root,
                                         of(member).communicator, stream(on)),
                      "ncclBroadcast");
}

int reduce(void* member, const float* from, float* to, int64_t count, int32_t root, void* on)
{
    if (of(member).aborted)
        return ended();
    return nccl.check(nccl.ncclReduce(from, to, static_cast<size_t>(count), ncclFloat, ncclSum, root,
                                      of(member).communicator, stream(on)),
                      "ncclReduce");
}

/// A small and a large sum: NCCL has a protocol for each.
int warmUpGroup(void* const* members, int32_t count, int64_t deadline)
{
    constexpr int64_t large = 1 << 18;
    std::vector<Place> places(static_cast<size_t>(count));
    int code = 0;
    for (int32_t i = 0; i < count && code == 0; ++i)
        code = places[static_cast<size_t>(i)].make(of(members[i]).device, large * sizeof(float));
    for (const int64_t elements : {int64_t{64}, large}) {
        code = code ? code : group(1);
        for (int32_t i = 0; i < count && code == 0; ++i) {
            auto* data = static_cast<float*>(places[static_cast<size_t>(i)].data);
            code = allReduce(members[i], data, data, elements, places[static_cast<size_t>(i)].stream);
        }
        code = code ? code : group(0);
    }
    return finish(places, code, Clock::now() + std::chrono::nanoseconds(deadline));
}

} // namespace

#else // built where NCCL's header is absent

namespace pipewright::plugin {

namespace {

int without()
{
    return fault("this plugin was built without NCCL's header");
}
int ncclOpen(const char*)
{
    return without();
}
int connect(int32_t, int32_t, int64_t, void**, void**)
{
    return without();
}
int send(void*, const void*, int64_t, void*)
{
    return without();
}
int receive(void*, void*, int64_t, void*)
{
    return without();
}
int group(int32_t)
{
    return without();
}
int abort(void*)
{
    return without();
}
int close(void*)
{
    return without();
}
int nameGroup(uint8_t*)
{
    return without();
}
int join(int32_t, const uint8_t*, int32_t, int32_t, int32_t, void**)
{
    return without();
}
int joined(void*, int32_t*)
{
    return without();
}
int warmUpGroup(void* const*, int32_t, int64_t)
{
    return without();
}
int allReduce(void*, const float*, float*, int64_t, void*)
{
    return without();
}
int allGather(void*, const float*, float*, int64_t, void*)
{
    return without();
}
int reduceScatter(void*, const float*, float*, int64_t, void*)
{
    return without();
}
int broadcast(void*, float*, int64_t, int32_t, void*)
{
    return without();
}
int reduce(void*, const float*, float*, int64_t, int32_t, void*)
{
    return without();
}
int sendTo(void*, int32_t, const void*, int64_t, void*)
{
    return without();
}
int receiveFrom(void*, int32_t, void*, int64_t, void*)
{
    return without();
}

} // namespace

#endif

void addNccl(PipewrightCudaTable& table)
{
    table.ncclOpen = ncclOpen;
    table.ncclConnect = connect;
    table.ncclSend = send;
    table.ncclReceive = receive;
    table.ncclGroup = group;
    table.ncclName = nameGroup;
    table.ncclJoin = join;
    table.ncclJoined = joined;
    table.ncclWarmUp = warmUpGroup;
    table.ncclAllReduce = allReduce;
    table.ncclAllGather = allGather;
    table.ncclReduceScatter = reduceScatter;
    table.ncclBroadcast = broadcast;
    table.ncclReduce = reduce;
    table.ncclSendTo = sendTo;
    table.ncclReceiveFrom = receiveFrom;
    table.ncclAbort = abort;
    table.ncclClose = close;
}

} // namespace pipewright::plugin
