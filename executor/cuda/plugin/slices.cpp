// SPDX-License-Identifier: GPL-3.0-or-later
// Slices of a GPU: green contexts, which give streams exclusive use of a part of the multiprocessors. They belong to
// the driver API, which is reached by its entry points, so that nothing is linked with the driver. Slices still share
// the GPU's memory, caches, bandwidth and power.
#include "executor/cuda/plugin/plugin.h"
#include "executor/cuda/slicesteps.h"

#include <cuda.h>

#include <algorithm>
#include <dlfcn.h>
#include <numeric>
#include <type_traits>
#include <vector>

namespace pipewright::plugin {

namespace {

/// The CUDA version that brought the newest function below, cuGreenCtxStreamCreate; the others came with 12.4
/// (cudaTypedefs.h). A driver gives the newest form of a function that is not newer than this.
constexpr unsigned greenContexts = 12050;

/// As cuda.h declares cuGreenCtxStreamCreate from 12.5 on; the plugin is built with 12.4, too.
using CreateStream = CUresult(CUstream*, CUgreenCtx, unsigned flags, int priority);
#if CUDA_VERSION >= 12050
static_assert(std::is_same_v<CreateStream, decltype(cuGreenCtxStreamCreate)>);
#endif

using EntryPoints = decltype(&cuGetProcAddress); // in its newest form, cuGetProcAddress_v2

/// Taken from the driver itself, which the runtime has opened by now: before 12.5 the runtime gives only functions of
/// its own version. Null without a driver.
EntryPoints entryPoints()
{
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return driver ? reinterpret_cast<EntryPoints>(dlsym(driver, "cuGetProcAddress_v2")) : nullptr;
}

template<typename Function>
int entryPoint(EntryPoints find, const char* name, Function*& function)
{
    void* address = nullptr;
    if (find && find(name, &address, greenContexts, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) == CUDA_SUCCESS && address) {
        function = reinterpret_cast<Function*>(address);
        return 0;
    }
    return fault(std::string("the driver is too old for slices: no ") + name);
}

struct Driver {
    decltype(&cuDeviceGetDevResource) resource = nullptr;
    decltype(&cuDevSmResourceSplitByCount) split = nullptr;
    decltype(&cuDevResourceGenerateDesc) describe = nullptr;
    decltype(&cuGreenCtxCreate) create = nullptr;
    decltype(&cuGreenCtxDestroy) destroy = nullptr;
    CreateStream* stream = nullptr;
    decltype(&cuStreamGetGreenCtx) contextOf = nullptr;
    decltype(&cuGreenCtxGetDevResource) resourceOf = nullptr;
    decltype(&cuGetErrorString) errorString = nullptr;

    int open()
    {
        int version = 0;
        int code = plugin::check(cudaDriverGetVersion(&version));
        if (code == 0 && version < static_cast<int>(greenContexts))
            code = fault("the driver is for CUDA " + std::to_string(version / 1000) + "."
                         + std::to_string(version % 1000 / 10) + ", and slices of a GPU need 12.5 (R555 or later)");
        const EntryPoints find = entryPoints();
        code = code ? code : entryPoint(find, "cuDeviceGetDevResource", resource);
        code = code ? code : entryPoint(find, "cuDevSmResourceSplitByCount", split);
        code = code ? code : entryPoint(find, "cuDevResourceGenerateDesc", describe);
        code = code ? code : entryPoint(find, "cuGreenCtxCreate", create);
        code = code ? code : entryPoint(find, "cuGreenCtxDestroy", destroy);
        code = code ? code : entryPoint(find, "cuGreenCtxStreamCreate", stream);
        code = code ? code : entryPoint(find, "cuStreamGetGreenCtx", contextOf);
        code = code ? code : entryPoint(find, "cuGreenCtxGetDevResource", resourceOf);
        return code ? code : entryPoint(find, "cuGetErrorString", errorString);
    }

    int check(CUresult code, const char* what) const
    {
        if (code == CUDA_SUCCESS)
            return 0;
        const char* text = nullptr;
        errorString(code, &text);
        return fault(std::string(what) + ": " + (text ? text : "unknown error"));
    }
};

/// The groups of one size into which a GPU is cut.
struct Groups {
    std::vector<CUdevResource> groups;
    unsigned size = 0; ///< multiprocessors of each

    size_t neededFor(int32_t wanted) const { return (static_cast<size_t>(wanted) + size - 1) / size; }
    bool suffice(const int32_t* wanted, int32_t count) const
    {
        size_t needed = 0;
        for (int32_t i = 0; i < count; ++i)
            needed += neededFor(wanted[i]);
        return needed <= groups.size();
    }
};

int cut(const Driver& driver, const CUdevResource& whole, unsigned size, Groups& groups)
{
    unsigned count = 0;
    int code = driver.check(driver.split(nullptr, &count, &whole, nullptr, 0, size), "cuDevSmResourceSplitByCount");
    if (code != 0 || count == 0)
        return code;
    groups.groups.resize(count);
    code = driver.check(driver.split(groups.groups.data(), &count, &whole, nullptr, 0, size),
                        "cuDevSmResourceSplitByCount");
    groups.groups.resize(count);
    groups.size = count > 0 ? groups.groups.front().sm.smCount : 0;
    return code;
}

/// CUDA 12 has no API for this, so the documented sizes are used.
int stepsOf(int32_t device, const CUdevResource& whole, SliceSteps& steps)
{
#if CUDART_VERSION >= 13000
    static_cast<void>(device);
    steps = {std::max(1u, whole.sm.minSmPartitionSize), std::max(1u, whole.sm.smCoscheduledAlignment)};
    return 0;
#else
    static_cast<void>(whole);
    int major = 0;
    const int code = check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    steps = sliceStepsOf(major);
    return code;
#endif
}

/// The groups of a split cannot be split again, but one context can have several of them (cuda.h, at
/// cuDevSmResourceSplitByCount and cuDevResourceGenerateDesc). So the GPU is split once, into the smallest groups that
/// suffice: larger ones only where the smallest waste too much.
int cutFor(const Driver& driver, const CUdevResource& whole, SliceSteps steps, const int32_t* wanted, int32_t count,
           Groups& groups)
{
    for (unsigned size = steps.least; size <= whole.sm.smCount; size += steps.step) {
        if (const int code = cut(driver, whole, size, groups); code != 0)
            return code;
        if (groups.size > 0 && groups.suffice(wanted, count))
            return 0;
    }
    return fault("the GPU has " + std::to_string(whole.sm.smCount) + " multiprocessors, and is cut in groups of "
                 + std::to_string(steps.least) + ", which are too few");
}

int createSlices(int32_t device, const int32_t* wanted, int32_t count, int32_t* granted, void** slices)
{
    Driver driver;
    if (const int code = makeCurrent(device); code != 0)
        return code;
    if (const int code = check(cudaFree(nullptr)); code != 0) // the GPU's context must be there first
        return code;
    if (const int code = driver.open(); code != 0)
        return code;
    CUdevResource whole{};
    Groups groups;
    SliceSteps steps;
    int code = driver.check(driver.resource(device, &whole, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
    code = code ? code : stepsOf(device, whole, steps);
    code = code ? code : cutFor(driver, whole, steps, wanted, count, groups);
    CUdevResource* next = groups.groups.data();
    int32_t made = 0;
    for (; made < count && code == 0; ++made) {
        const auto own = static_cast<unsigned>(groups.neededFor(wanted[made]));
        CUdevResourceDesc description = nullptr;
        CUgreenCtx context = nullptr;
        code = driver.check(driver.describe(&description, next, own), "cuDevResourceGenerateDesc");
        code = code ? code
                    : driver.check(driver.create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM),
                                   "cuGreenCtxCreate");
        if (code != 0)
            break;
        slices[made] = context;
        granted[made] = std::accumulate(next, next + own, int32_t{0}, [](int32_t sum, const CUdevResource& group) {
            return sum + static_cast<int32_t>(group.sm.smCount);
        });
        next += own;
    }
    if (code == 0)
        return 0;
    const std::string why = lastError();
    for (int32_t i = 0; i < made; ++i) // the caller does not get these
        driver.destroy(static_cast<CUgreenCtx>(slices[i]));
    return fault(why);
}

int destroySlice(void* slice)
{
    Driver driver;
    if (const int code = driver.open(); code != 0)
        return code;
    return driver.check(driver.destroy(static_cast<CUgreenCtx>(slice)), "cuGreenCtxDestroy");
}

int createStream(int32_t device, void* slice, void** result)
{
    if (const int code = makeCurrent(device); code != 0)
        return code;
    if (!slice)
        return check(cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(result), cudaStreamNonBlocking));
    Driver driver;
    if (const int code = driver.open(); code != 0)
        return code;
    return driver.check(
        driver.stream(reinterpret_cast<CUstream*>(result), static_cast<CUgreenCtx>(slice), CU_STREAM_NON_BLOCKING, 0),
        "cuGreenCtxStreamCreate");
}

} // namespace

int multiprocessorsOf(cudaStream_t stream, int32_t* count)
{
    *count = 0;
    Driver driver;
    if (driver.open() != 0) // too old for slices, so there are none
        return 0;
    CUgreenCtx context = nullptr;
    if (const int code = driver.check(driver.contextOf(stream, &context), "cuStreamGetGreenCtx"); code != 0 || !context)
        return code;
    CUdevResource own{};
    const int code =
        driver.check(driver.resourceOf(context, &own, CU_DEV_RESOURCE_TYPE_SM), "cuGreenCtxGetDevResource");
    *count = code == 0 ? static_cast<int32_t>(own.sm.smCount) : 0;
    return code;
}

void addSlices(PipewrightCudaTable& table)
{
    table.createSlices = createSlices;
    table.destroySlice = destroySlice;
    table.createStream = createStream;
}

} // namespace pipewright::plugin
