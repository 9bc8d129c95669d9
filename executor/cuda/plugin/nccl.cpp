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

#include <algorithm>
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
    End(int32_t gpu, int32_t own, int32_t all) : device(gpu), rank(own), ranks(all) {}
    std::shared_ptr<Joining> joining = std::make_shared<Joining>();
    ncclComm_t communicator = nullptr; ///< set by ncclJoined() after the rank has joined
    const int32_t device, rank, ranks;
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
    auto made = std::make_unique<End>(device, rank, ranks);
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

constexpr size_t largeCollective = 1 << 18; ///< numbers

/// A rank while it is warmed up. Has nothing that closing its end frees.
struct Warming {
    ncclComm_t communicator = nullptr;
    size_t rank = 0, ranks = 1;
    Place place;

    const float* from() const { return static_cast<const float*>(place.data); }
    float* to() const { return static_cast<float*>(place.data) + largeCollective; }
    size_t share(size_t count) const { return std::max<size_t>(1, count / ranks); }
};
using Collective = ncclResult_t(const Warming& of, size_t count);
constexpr Collective* collectives[] = {
    [](const Warming& of, size_t count) {
        return nccl.ncclAllReduce(of.from(), of.to(), count, ncclFloat, ncclSum, of.communicator, of.place.stream);
    },
    [](const Warming& of, size_t count) {
        return nccl.ncclAllGather(of.from(), of.to(), of.share(count), ncclFloat, of.communicator, of.place.stream);
    },
    [](const Warming& of, size_t count) {
        return nccl.ncclReduceScatter(of.from(), of.to(), of.share(count), ncclFloat, ncclSum, of.communicator,
                                      of.place.stream);
    },
    [](const Warming& of, size_t count) {
        return nccl.ncclBroadcast(of.from(), of.to(), count, ncclFloat, 0, of.communicator, of.place.stream);
    },
    [](const Warming& of, size_t count) {
        return nccl.ncclReduce(of.from(), of.to(), count, ncclFloat, ncclSum, 0, of.communicator, of.place.stream);
    }};

/// Of a connection of two, from rank 0 to rank 1.
constexpr Collective* transferOfTwo = [](const Warming& of, size_t count) {
    return of.rank == 0 ? nccl.ncclSend(of.from(), count, ncclFloat, 1, of.communicator, of.place.stream)
                        : nccl.ncclRecv(of.to(), count, ncclFloat, 0, of.communicator, of.place.stream);
};

/// What the thread that warms up shares with its caller, which does not wait for it for ever.
struct WarmUp {
    std::vector<Warming> members;
    int code = 0;
    std::string why;
    std::atomic<bool> ended{false}; ///< by the caller
    std::atomic<bool> done{false};  ///< `code` and `why` are set

    /// A small and a large one of each kind: NCCL has a protocol for each.
    int use(std::span<Collective* const> kinds)
    {
        int result = 0;
        for (Warming& member : members)
            result = result ? result : member.place.make(member.place.device, 2 * largeCollective * sizeof(float));
        for (const size_t count : {size_t{64}, largeCollective})
            for (Collective* const kind : kinds) {
                if (result != 0 || ended)
                    return result;
                result = group(1);
                for (const Warming& member : members)
                    result = result ? result : nccl.check(kind(member, count), "what connects the ranks");
                const int over = group(0); // after an error too
                result = result ? result : over;
            }
        return result;
    }
};

/// NCCL's calls may wait for other processes, so they are made by a thread that the caller can leave.
int warmUp(std::span<void* const> members, std::span<Collective* const> kinds, Clock::time_point until)
{
    const auto shared = std::make_shared<WarmUp>();
    for (void* const member : members) {
        const End& end = of(member);
        shared->members.push_back(
            {end.communicator, static_cast<size_t>(end.rank), static_cast<size_t>(end.ranks), {.device = end.device}});
    }
    const auto work = [shared, kinds] {
        shared->code = shared->use(kinds);
        if (shared->code != 0)
            shared->why = lastError();
        shared->done.store(true, std::memory_order_release);
    };
    try {
        std::thread(work).detach();
    } catch (const std::system_error& error) {
        return fault(std::string("no thread to connect with: ") + error.what());
    }
    const auto isDone = [&](int32_t* done) { return *done = shared->done.load(std::memory_order_acquire), 0; };
    if (await(until, "connected its ranks", isDone) != 0) {
        const std::string why = lastError();
        shared->ended = true;
        group(1); // the call that waits is ended now, and what it uses freed behind it
        for (void* const member : members)
            abort(member);
        await(Clock::now() + std::chrono::seconds(5), "ended a call", isDone);
        group(0);
        return fault(why);
    }
    if (shared->code != 0)
        return fault(shared->why);
    std::vector<Place> places;
    for (const Warming& member : shared->members)
        places.push_back(member.place);
    return finish(places, 0, until);
}

int warmUpGroup(void* const* members, int32_t count, int32_t all, int64_t deadline)
{
    return warmUp(std::span(members, static_cast<size_t>(count)),
                  std::span(collectives).first(all ? std::size(collectives) : 1),
                  Clock::now() + std::chrono::nanoseconds(deadline));
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
    code = code ? code : warmUp(ends, std::span(&transferOfTwo, 1), until);
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

} // namespace

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

#else // built where NCCL's header is absent

namespace pipewright::plugin {

namespace {

template<typename... Arguments>
int without(Arguments...)
{
    return fault("this plugin was built without NCCL's header");
}

} // namespace

void addNccl(PipewrightCudaTable& table)
{
    const auto refuse = [](auto&... calls) { ((calls = without), ...); };
    refuse(table.ncclOpen, table.ncclConnect, table.ncclSend, table.ncclReceive, table.ncclGroup, table.ncclName,
           table.ncclJoin, table.ncclJoined, table.ncclWarmUp, table.ncclAllReduce, table.ncclAllGather,
           table.ncclReduceScatter, table.ncclBroadcast, table.ncclReduce, table.ncclSendTo, table.ncclReceiveFrom,
           table.ncclAbort, table.ncclClose);
}

#endif

} // namespace pipewright::plugin
