// SPDX-License-Identifier: GPL-3.0-or-later
// libcuda: the functions that the loader needs, entry points by version, and green contexts.
#include "engine.h"
#include "green.h"
#include "machine.h"
#include "observer.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

using namespace standin;

namespace {

/// The origin of a CUdevResource, stored in its padding, which belongs to the driver (cuda.h:24793).
struct Origin {
    std::uint64_t magic;
    enum Kind : std::uint32_t { Whole, Group, Remainder } kind;
    std::uint32_t split; ///< which call of the split made it
    std::uint32_t device, first;
};
constexpr std::uint64_t magic = 0x50575349;

Origin originOf(const CUdevResource& resource)
{
    Origin origin{};
    std::memcpy(&origin, resource._internal_padding, sizeof origin);
    return origin;
}

struct Partition {
    unsigned least, step;
};

/// cuda.h:24711, the guideline for each architecture.
Partition partition()
{
    switch (settings().major) {
    case 6:
    case 7: return {2, 2};
    case 8: return {4, 2};
    }
    return {8, 8};
}

CUdevResource resource(Origin::Kind kind, std::uint32_t split, std::uint32_t device, std::uint32_t first, unsigned size)
{
    CUdevResource result{};
    result.type = CU_DEV_RESOURCE_TYPE_SM;
    // CUDA 12 has only the first of the three members (its cuda.h, CUdevSmResource).
    result.sm = settings().driver < 13000 ? CUdevSmResource{size, 0, 0}
                                          : CUdevSmResource{size, partition().least, partition().step};
    const Origin origin{magic, kind, split, device, first};
    std::memcpy(result._internal_padding, &origin, sizeof origin);
    return result;
}

struct Description {
    int device = 0;
    unsigned multiprocessors = 0, first = 0;
};

std::mutex mutex; ///< guards what follows
std::set<Slice*> slices;
std::set<int> primaries;
std::uint32_t splits = 0, contexts = 64;
std::vector<ContextMade> made;
bool started = false;

bool isDevice(int device)
{
    return device >= 0 && device < settings().gpus;
}

void tell(const ContextMade& context)
{
    {
        const std::lock_guard lock(mutex);
        made.push_back(context);
    }
    if (Observer* const seer = observer.load())
        seer->contextMade(context.context, context.device, context.parent, context.multiprocessors);
}

} // namespace

namespace standin {

void usePrimaryContext(int device)
{
    {
        const std::lock_guard lock(mutex);
        if (!primaries.insert(device).second)
            return;
    }
    tell({static_cast<std::uint32_t>(device) + 1, device, 0, 0});
}

std::vector<ContextMade> contextsSoFar()
{
    const std::lock_guard lock(mutex);
    return made;
}

} // namespace standin

extern "C" {

CUresult cuInit(unsigned)
{
    count("cuInit");
    {
        const std::lock_guard lock(mutex);
        started = true;
    }
    // The driver reads its environment when it starts: 8 connections unless it says otherwise (cuda.h:24719).
    const char* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    atMost("connections", connections ? std::atol(connections) : 8);
    return settings().gpus > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int* version)
{
    *version = settings().driver;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* gpus)
{
    if (!started)
        return CUDA_ERROR_NOT_INITIALIZED;
    *gpus = settings().gpus;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char** text)
{
    switch (code) {
    case CUDA_SUCCESS: *text = "no error"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE: *text = "invalid argument"; return CUDA_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY: *text = "out of memory"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_DEVICE: *text = "invalid device ordinal"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_CONTEXT: *text = "invalid device context"; return CUDA_SUCCESS;
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: *text = "context is destroyed"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_HANDLE: *text = "invalid resource handle"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_RESOURCE_TYPE: *text = "invalid resource type"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: *text = "invalid resource configuration"; return CUDA_SUCCESS;
    default: *text = nullptr; return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* result, CUdevResourceType type)
{
    const Call call(Domain::Driver, "cuDeviceGetDevResource");
    if (!isDevice(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *result = resource(Origin::Whole, 0, static_cast<std::uint32_t>(device), 0,
                       static_cast<unsigned>(settings().multiprocessors));
    return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups, const CUdevResource* input,
                                     CUdevResource* remaining, unsigned flags, unsigned least)
{
    const Call call(Domain::Driver, "cuDevSmResourceSplitByCount");
    if (!groups || !input || flags > 3)
        return CUDA_ERROR_INVALID_VALUE;
    const Origin origin = originOf(*input);
    if (input->type != CU_DEV_RESOURCE_TYPE_SM || origin.magic != magic)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    // cuda.h:24987: "needs to come from one of ::cuDeviceGetDevResource, ::cuCtxGetDevResource, or
    // ::cuGreenCtxGetDevResource"; what a split gave "cannot be split again without first creating a descriptor and a
    // green context with that descriptor".
    if (origin.kind != Origin::Whole)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (least > input->sm.smCount) // cuda.h:25010
        return CUDA_ERROR_INVALID_VALUE;
    const auto [smallest, step] = partition();
    const unsigned size = (std::max(least, smallest) + step - 1) / step * step;
    const unsigned most = input->sm.smCount / size;
    if (!result) { // cuda.h:24981, "simulates a split"
        *groups = most;
        return CUDA_SUCCESS;
    }
    *groups = std::min(*groups, most);
    std::uint32_t own = 0;
    {
        const std::lock_guard lock(mutex);
        own = ++splits;
    }
    for (unsigned i = 0; i < *groups; ++i)
        result[i] = resource(Origin::Group, own, origin.device, origin.first + i * size, size);
    if (remaining) {
        const unsigned left = input->sm.smCount - *groups * size;
        *remaining = resource(Origin::Remainder, own, origin.device, origin.first + *groups * size, left);
        if (left == 0)
            remaining->type = CU_DEV_RESOURCE_TYPE_INVALID;
    }
    return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* result, CUdevResource* resources, unsigned number)
{
    const Call call(Domain::Driver, "cuDevResourceGenerateDesc");
    if (!result || !resources || number == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const Origin first = originOf(resources[0]);
    Description whole{static_cast<int>(first.device), 0, first.first};
    std::set<std::uint32_t> places;
    for (unsigned i = 0; i < number; ++i) {
        const Origin origin = originOf(resources[i]);
        if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM || origin.magic != magic)
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        // cuda.h:25054: of one GPU, and "outputs (whether result or remaining) from the same split API instance".
        const bool together =
            number == 1
            || (origin.kind != Origin::Whole && origin.split == first.split && origin.device == first.device);
        if (!together || !places.insert(origin.first).second)
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        whole.multiprocessors += resources[i].sm.smCount;
        whole.first = std::min(whole.first, origin.first); // the groups of a context are neighbours here
    }
    *result = reinterpret_cast<CUdevResourceDesc>(new Description(whole)); // no call frees it
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* result, CUdevResourceDesc description, CUdevice device, unsigned flags)
{
    const Call call(Domain::Driver, "cuGreenCtxCreate");
    const auto* whole = reinterpret_cast<const Description*>(description);
    if (!result || !whole || flags != CU_GREEN_CTX_DEFAULT_STREAM) // cuda.h:24832, "Required"
        return CUDA_ERROR_INVALID_VALUE;
    if (device != whole->device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (failsNow("green"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    usePrimaryContext(device); // cuda.h:24817, "will retain the primary context"
    auto* slice = new Slice{device, whole->multiprocessors, failsFromNow("overlap") ? 0 : whole->first, 0};
    {
        const std::lock_guard lock(mutex);
        slice->context = ++contexts;
        slices.insert(slice);
    }
    hold("green contexts", 1);
    tell({slice->context, device, static_cast<std::uint32_t>(device) + 1, static_cast<int>(slice->multiprocessors)});
    *result = reinterpret_cast<CUgreenCtx>(slice);
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
    const Call call(Domain::Driver, "cuGreenCtxDestroy");
    auto* slice = reinterpret_cast<Slice*>(context);
    {
        const std::lock_guard lock(mutex);
        if (slices.erase(slice) == 0)
            return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!streamsOf(slice).empty())
        broken("a green context was destroyed before its streams", "cuda.h:24864");
    hold("green contexts", -1);
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx context, CUdevResource* result, CUdevResourceType type)
{
    const Call call(Domain::Driver, "cuGreenCtxGetDevResource");
    const auto* slice = reinterpret_cast<const Slice*>(context);
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *result = resource(Origin::Whole, 0, static_cast<std::uint32_t>(slice->device), 0, slice->multiprocessors);
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* result, CUgreenCtx context, unsigned flags, int)
{
    const Call call(Domain::Driver, "cuGreenCtxStreamCreate");
    auto* slice = reinterpret_cast<Slice*>(context);
    {
        const std::lock_guard lock(mutex);
        if (!slices.contains(slice))
            return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (flags != CU_STREAM_NON_BLOCKING) // cuda.h:25201, "This must be specified"
        return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUstream>(makeStream(slice->device, slice, slice->context));
    hold("streams", 1);
    hold("streams of GPU " + std::to_string(slice->device), 1);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* result)
{
    const Call call(Domain::Driver, "cuStreamGetGreenCtx");
    Stream* stream = streamOf(handle, currentDevice());
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *result = reinterpret_cast<CUgreenCtx>(stream->slice); // null: of the primary context
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* name, void** address, int version, cuuint64_t,
                             CUdriverProcAddressQueryResult* status)
{
    bool known = false;
    *address = driverEntryPoint(name, version, &known);
    if (status)
        *status = *address ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known  ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                           : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

} // extern "C"

namespace standin {

void* driverEntryPoint(const char* name, int version, bool* known)
{
    struct Entry {
        std::string_view name;
        int since; ///< the version behind PFN_…_v in cudaTypedefs.h
        void* address;
    };
    static const std::array entries{
        Entry{"cuDeviceGetDevResource", 12040, reinterpret_cast<void*>(&cuDeviceGetDevResource)},
        Entry{"cuDevSmResourceSplitByCount", 12040, reinterpret_cast<void*>(&cuDevSmResourceSplitByCount)},
        Entry{"cuDevResourceGenerateDesc", 12040, reinterpret_cast<void*>(&cuDevResourceGenerateDesc)},
        Entry{"cuGreenCtxCreate", 12040, reinterpret_cast<void*>(&cuGreenCtxCreate)},
        Entry{"cuGreenCtxDestroy", 12040, reinterpret_cast<void*>(&cuGreenCtxDestroy)},
        Entry{"cuGreenCtxGetDevResource", 12040, reinterpret_cast<void*>(&cuGreenCtxGetDevResource)},
        Entry{"cuStreamGetGreenCtx", 12040, reinterpret_cast<void*>(&cuStreamGetGreenCtx)},
        Entry{"cuGreenCtxStreamCreate", 12050, reinterpret_cast<void*>(&cuGreenCtxStreamCreate)},
        Entry{"cuGetErrorString", 6000, reinterpret_cast<void*>(&cuGetErrorString)},
    };
    for (const Entry& entry : entries)
        if (entry.name == name) {
            *known = true;
            return version >= entry.since && settings().driver >= entry.since ? entry.address : nullptr;
        }
    *known = false;
    return nullptr;
}

} // namespace standin
