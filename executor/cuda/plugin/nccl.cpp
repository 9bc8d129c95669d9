// SPDX-License-Identifier: GPL-3.0-or-later
// NCCL, opened by name. One communicator of two ranks per directed pair, both ranks in this process, so that nothing
// waits for the opposite direction or for another pair. Connections are made lazily by NCCL: each is warmed up when
// it is made. Few channels per transfer, since every one takes a multiprocessor away from the maths.
#include "executor/cuda/plugin/plugin.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <memory>
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

Nccl nccl; ///< opened once, before any thread uses it

struct End {
    End(int32_t gpu) : device(gpu) {}
    ncclComm_t communicator = nullptr;
    const int32_t device;
    std::atomic<bool> aborted{false}; ///< nothing may be called with it any more
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
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL); // never closed: CUDA does not like that
    if (!library)
        return fault(dlerror());
#define PIPEWRIGHT_LOAD(name)                                                                                          \
    if (nccl.name = reinterpret_cast<decltype(nccl.name)>(dlsym(library, #name)); !nccl.name)                          \
        return fault(std::string(path) + " has no " #name);
    PIPEWRIGHT_NCCL(PIPEWRIGHT_LOAD)
#undef PIPEWRIGHT_LOAD
    int version = 0;
    if (const int code = nccl.check(nccl.ncclGetVersion(&version), "ncclGetVersion"); code != 0)
        return code;
    if (version < NCCL_VERSION(NCCL_MAJOR, 0, 0))
        return fault(std::string(path) + " is version " + std::to_string(version) + ", older than this plugin knows");
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
        int code = check(cudaSetDevice(device));
        code = code ? code : check(cudaMalloc(&data, static_cast<size_t>(bytes)));
        code = code ? code : check(cudaMemset(data, 0, static_cast<size_t>(bytes)));
        return code ? code : check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    int finish(bool waits)
    {
        cudaSetDevice(device);
        const int code = waits ? check(cudaStreamSynchronize(stream)) : 0;
        if (stream)
            cudaStreamDestroy(stream);
        cudaFree(data);
        return code;
    }
    int32_t device = 0;
    void* data = nullptr;
    cudaStream_t stream = nullptr;
};

/// One small and one large transfer: NCCL has a protocol for each.
int warmUp(End& sender, End& receiver)
{
    constexpr int64_t large = 1 << 20;
    Place from, to;
    int code = from.make(sender.device, large);
    code = code ? code : to.make(receiver.device, large);
    for (const int64_t bytes : {int64_t{256}, large}) {
        code = code ? code : group(1);
        code = code ? code : send(&sender, from.data, bytes, from.stream);
        code = code ? code : receive(&receiver, to.data, bytes, to.stream);
        code = code ? code : group(0);
    }
    for (Place* place : {&from, &to}) {
        const int finished = place->finish(code == 0);
        code = code ? code : finished;
    }
    return code;
}

int connect(int32_t from, int32_t to, void** sender, void** receiver)
{
    if (from == to)
        return fault("NCCL does not connect a GPU with itself");
    auto first = std::make_unique<End>(from), second = std::make_unique<End>(to);
    ncclUniqueId id{};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = 4;
    int code = nccl.check(nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
    code = code ? code : group(1);
    code = code ? code : check(cudaSetDevice(from));
    code = code ? code
                : nccl.check(nccl.ncclCommInitRankConfig(&first->communicator, 2, id, 0, &config), "ncclCommInitRank");
    code = code ? code : check(cudaSetDevice(to));
    code = code ? code
                : nccl.check(nccl.ncclCommInitRankConfig(&second->communicator, 2, id, 1, &config), "ncclCommInitRank");
    code = code ? code : group(0);
    code = code ? code : warmUp(*first, *second);
    if (code != 0)
        return code;
    *sender = first.release();
    *receiver = second.release();
    return 0;
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
    if (const int code = check(cudaSetDevice(device)); code != 0)
        return code;
    auto made = std::make_unique<End>(device);
    ncclUniqueId id{};
    std::memcpy(&id, name, sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (multiprocessors > 0)
        config.maxCTAs = multiprocessors;
    // In a group NCCL writes the communicator when the group ends, so its place must stay.
    if (const int code = nccl.check(nccl.ncclCommInitRankConfig(&made->communicator, ranks, id, rank, &config),
                                    "ncclCommInitRank");
        code != 0)
        return code;
    *member = made.release();
    return 0;
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
    return nccl.check(nccl.ncclAllGather(from, to, static_cast<size_t>(countOfEach), ncclFloat,
                                         of(member).communicator, stream(on)),
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
int warmUpGroup(void* const* members, int32_t count)
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
    for (Place& place : places) {
        const int finished = place.finish(code == 0);
        code = code ? code : finished;
    }
    return code;
}

int abort(void* end)
{
    if (of(end).aborted.exchange(true))
        return 0;
    return nccl.check(nccl.ncclCommAbort(of(end).communicator), "ncclCommAbort");
}

int close(void* end)
{
    const std::unique_ptr<End> owned(&of(end));
    return owned->aborted ? 0 : nccl.check(nccl.ncclCommDestroy(owned->communicator), "ncclCommDestroy");
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
int connect(int32_t, int32_t, void**, void**)
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
int warmUpGroup(void* const*, int32_t)
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
