// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cuda/kernels.h"

namespace pipewright::kernels::cuda {

namespace {

/// Nanoseconds; the resolution is about a microsecond on current GPUs.
__device__ std::int64_t now()
{
    std::int64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__global__ void spinUntil(const std::int64_t* place, std::int64_t nanoseconds)
{
    const std::int64_t until = (place ? *place : now()) + nanoseconds;
    while (now() < until) {
    }
}

__global__ void writeTime(std::int64_t* place)
{
    *place = now();
}

} // namespace

void spin(cudaStream_t stream, std::int64_t nanoseconds)
{
    if (nanoseconds > 0)
        spinUntil<<<1, 1, 0, stream>>>(nullptr, nanoseconds);
}

void stamp(cudaStream_t stream, std::int64_t* place)
{
    writeTime<<<1, 1, 0, stream>>>(place);
}

void spinFrom(cudaStream_t stream, const std::int64_t* place, std::int64_t nanoseconds)
{
    spinUntil<<<1, 1, 0, stream>>>(place, nanoseconds);
}

} // namespace pipewright::kernels::cuda
