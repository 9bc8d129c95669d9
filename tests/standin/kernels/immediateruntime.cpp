// SPDX-License-Identifier: GPL-3.0-or-later
// A synchronous CUDA runtime, for programs that check kernels and not the order of work. Memory is host memory, so the
// address sanitizer checks every byte; new memory holds a NaN pattern; a launch returns when its kernel is done.
#include "launch.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>

struct CUevent_st {
    std::chrono::steady_clock::time_point time;
};

extern "C" {

void pipewrightStandinLaunch(const standin::Launch& launch)
{
    standin::runGrid(launch);
}

const char* cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    }
    return "unrecognized error code";
}

cudaError_t cudaGetLastError()
{
    return cudaSuccess; // a kernel that fails ends the program
}

cudaError_t cudaGetDeviceCount(int* count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int)
{
    *value = 9; // of a Hopper
    return cudaSuccess;
}

cudaError_t cudaMalloc(void** place, std::size_t bytes)
{
    *place = nullptr;
    if (bytes == 0)
        return cudaSuccess;
    constexpr std::size_t alignment = 256; // "suitably aligned for any kind of variable", 256 in practice
    if (posix_memalign(place, alignment, bytes) != 0)
        return cudaErrorMemoryAllocation;
    std::memset(*place, 0xff, bytes);
    return cudaSuccess;
}

cudaError_t cudaFree(void* place)
{
    std::free(place);
    return cudaSuccess;
}

cudaError_t cudaMemset(void* place, int value, std::size_t bytes)
{
    if (bytes > 0)
        std::memset(place, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind)
{
    if (bytes > 0)
        std::memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t)
{
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaEventCreate(cudaEvent_t* event)
{
    *event = new CUevent_st{};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    event->time = std::chrono::steady_clock::now();
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
    return cudaSuccess;
}

} // extern "C"
