// SPDX-License-Identifier: GPL-3.0-or-later
// Slices of a GPU: green contexts, which give streams a part of the multiprocessors for themselves. They are the
// driver's, reached by the runtime's entry points, so that nothing is linked with the driver. Memory is the whole
// GPU's; so are its caches, its bandwidth and its power, which slices still share.
#include "executor/cuda/plugin/plugin.h"

#include <cuda.h>

namespace pipewright::plugin {

namespace {

constexpr unsigned greenContexts = 12040; ///< the CUDA version that brought them

template<typename Function>
int entryPoint(const char* name, Function*& function)
{
    cudaDriverEntryPointQueryResult found{};
    void* address = nullptr;
    if (const int code =
            check(cudaGetDriverEntryPointByVersion(name, &address, greenContexts, cudaEnableDefault, &found));
        code != 0)
        return code;
    function = reinterpret_cast<Function*>(address);
    return found == cudaDriverEntryPointSuccess && address
               ? 0
               : fault(std::string("the driver is too old for slices: no ") + name);
}

struct Driver {
    decltype(&cuDeviceGetDevResource) resource = nullptr;
    decltype(&cuDevSmResourceSplitByCount) split = nullptr;
    decltype(&cuDevResourceGenerateDesc) describe = nullptr;
    decltype(&cuGreenCtxCreate) create = nullptr;
    decltype(&cuGreenCtxDestroy) destroy = nullptr;
    decltype(&cuGreenCtxStreamCreate) stream = nullptr;
    decltype(&cuGetErrorString) errorString = nullptr;

    int open()
    {
        int code = entryPoint("cuDeviceGetDevResource", resource);
        code = code ? code : entryPoint("cuDevSmResourceSplitByCount", split);
        code = code ? code : entryPoint("cuDevResourceGenerateDesc", describe);
        code = code ? code : entryPoint("cuGreenCtxCreate", create);
        code = code ? code : entryPoint("cuGreenCtxDestroy", destroy);
        code = code ? code : entryPoint("cuGreenCtxStreamCreate", stream);
        return code ? code : entryPoint("cuGetErrorString", errorString);
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

int createSlices(int32_t device, const int32_t* wanted, int32_t count, int32_t* granted, void** slices)
{
    Driver driver;
    if (const int code = check(cudaSetDevice(device)); code != 0)
        return code;
    if (const int code = check(cudaFree(nullptr)); code != 0) // the GPU's context must be there first
        return code;
    if (const int code = driver.open(); code != 0)
        return code;
    CUdevResource rest{};
    if (const int code =
            driver.check(driver.resource(device, &rest, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
        code != 0)
        return code;
    // One after the other, each from what the ones before it left.
    for (int32_t i = 0; i < count; ++i) {
        CUdevResource part{}, left{};
        unsigned groups = 1;
        if (const int code =
                driver.check(driver.split(&part, &groups, &rest, &left, 0, static_cast<unsigned>(wanted[i])),
                             "cuDevSmResourceSplitByCount");
            code != 0)
            return code;
        if (groups != 1)
            return fault("only " + std::to_string(rest.sm.smCount) + " multiprocessors are left for slice "
                         + std::to_string(i));
        CUdevResourceDesc description = nullptr;
        CUgreenCtx context = nullptr;
        if (const int code = driver.check(driver.describe(&description, &part, 1), "cuDevResourceGenerateDesc");
            code != 0)
            return code;
        if (const int code = driver.check(driver.create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM),
                                          "cuGreenCtxCreate");
            code != 0)
            return code;
        slices[i] = context;
        granted[i] = static_cast<int32_t>(part.sm.smCount);
        rest = left;
    }
    return 0;
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
    if (const int code = check(cudaSetDevice(device)); code != 0)
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

void addSlices(PipewrightCudaTable& table)
{
    table.createSlices = createSlices;
    table.destroySlice = destroySlice;
    table.createStream = createStream;
}

} // namespace pipewright::plugin
