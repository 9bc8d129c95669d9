// SPDX-License-Identifier: GPL-3.0-or-later
// NCCL, opened by name. One communicator of two ranks per directed pair, both ranks in this process, so that nothing
// waits for the opposite direction or for another pair. Connections are made lazily by NCCL: each is warmed up when
// it is made. Few channels per transfer, since every one takes a multiprocessor away from the maths.
#include "executor/cuda/plugin/plugin.h"

#include <dlfcn.h>
#include <memory>

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace pipewright::plugin {

namespace {

#define PIPEWRIGHT_NCCL(use)                                                                                           \
    use(ncclGetVersion) use(ncclGetErrorString) use(ncclGetUniqueId) use(ncclCommInitRankConfig) use(ncclCommAbort)    \
        use(ncclCommDestroy) use(ncclSend) use(ncclRecv) use(ncclGroupStart) use(ncclGroupEnd)

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
    ncclComm_t communicator = nullptr;
    int32_t device = 0;
};

End& of(void* handle)
{
    return *static_cast<End*>(handle);
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

int send(void* end, const void* data, int64_t bytes, void* on)
{
    return nccl.check(nccl.ncclSend(data, static_cast<size_t>(bytes), ncclChar, 1, of(end).communicator, stream(on)),
                      "ncclSend");
}

int receive(void* end, void* data, int64_t bytes, void* on)
{
    return nccl.check(nccl.ncclRecv(data, static_cast<size_t>(bytes), ncclChar, 0, of(end).communicator, stream(on)),
                      "ncclRecv");
}

int group(int32_t begin)
{
    return begin ? nccl.check(nccl.ncclGroupStart(), "ncclGroupStart")
                 : nccl.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
}

/// One small and one large transfer: NCCL has a protocol for each.
int warmUp(End& sender, End& receiver)
{
    constexpr int64_t large = 1 << 20;
    struct Place {
        void* data = nullptr;
        cudaStream_t stream = nullptr;
    } places[2];
    const int32_t devices[] = {sender.device, receiver.device};
    int code = 0;
    for (int i = 0; i < 2 && code == 0; ++i) {
        code = check(cudaSetDevice(devices[i]));
        code = code ? code : check(cudaMalloc(&places[i].data, large));
        code = code ? code : check(cudaStreamCreateWithFlags(&places[i].stream, cudaStreamNonBlocking));
    }
    for (const int64_t bytes : {int64_t{256}, large}) {
        code = code ? code : group(1);
        code = code ? code : send(&sender, places[0].data, bytes, places[0].stream);
        code = code ? code : receive(&receiver, places[1].data, bytes, places[1].stream);
        code = code ? code : group(0);
    }
    for (int i = 0; i < 2; ++i) {
        cudaSetDevice(devices[i]);
        if (code == 0)
            code = check(cudaStreamSynchronize(places[i].stream));
        cudaStreamDestroy(places[i].stream);
        cudaFree(places[i].data);
    }
    return code;
}

int connect(int32_t from, int32_t to, void** sender, void** receiver)
{
    if (from == to)
        return fault("NCCL does not connect a GPU with itself");
    auto first = std::make_unique<End>(End{nullptr, from}), second = std::make_unique<End>(End{nullptr, to});
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

int abort(void* end)
{
    const std::unique_ptr<End> owned(&of(end));
    return nccl.check(nccl.ncclCommAbort(owned->communicator), "ncclCommAbort");
}

int close(void* end)
{
    const std::unique_ptr<End> owned(&of(end));
    return nccl.check(nccl.ncclCommDestroy(owned->communicator), "ncclCommDestroy");
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

} // namespace

#endif

void addNccl(PipewrightCudaTable& table)
{
    table.ncclOpen = ncclOpen;
    table.ncclConnect = connect;
    table.ncclSend = send;
    table.ncclReceive = receive;
    table.ncclGroup = group;
    table.ncclAbort = abort;
    table.ncclClose = close;
}

} // namespace pipewright::plugin
