// SPDX-License-Identifier: GPL-3.0-or-later
// Whether slices of a GPU are what they are said to be: four of them, each with multiprocessors of its own, and as fast
// side by side as alone. Through the plugin, as a run makes them. Prints what it saw and returns 1 when two slices met
// on a multiprocessor, 2 when there is nothing to check.
//   slicecheck [--small]    less work, for a CPU that plays the GPU
#include "executor/cuda/loader.h"
#include "gpu/check.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr int slices = 4, threads = 128;

/// Where each block ran. It computes meanwhile, so that no multiprocessor takes the work of two.
__global__ void work(int rounds, unsigned* multiprocessors, float* result)
{
    unsigned own;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(own));
    float value = float(threadIdx.x);
    for (int i = 0; i < rounds; ++i)
        value = value * 0.999f + 1.0f;
    if (threadIdx.x == 0)
        multiprocessors[blockIdx.x] = own;
    if (value < 0) // never
        *result = value;
}

struct Slice {
    void* context = nullptr;
    void* stream = nullptr;
    std::int32_t granted = 0;
    cudaEvent_t begin = nullptr, end = nullptr;
};

/// Milliseconds of each of these, all issued before any is waited for.
std::vector<float> timesOf(std::span<Slice> used, int blocks, int rounds, Memory<unsigned>& seen, float* result)
{
    for (Slice& slice : used) {
        const auto stream = static_cast<cudaStream_t>(slice.stream);
        const std::size_t place = std::size_t(&slice - used.data()) * std::size_t(blocks);
        require(cudaEventRecord(slice.begin, stream), "record an event");
        work<<<unsigned(blocks), threads, 0, stream>>>(rounds, seen.span().data() + place, result);
        require(cudaGetLastError(), "launch on a slice");
        require(cudaEventRecord(slice.end, stream), "record an event");
    }
    std::vector<float> times;
    for (Slice& slice : used) {
        require(cudaEventSynchronize(slice.end), "run on a slice");
        require(cudaEventElapsedTime(&times.emplace_back(), slice.begin, slice.end), "measure");
    }
    return times;
}

} // namespace

int main(int count, char** arguments)
{
    small = count > 1 && std::string_view(arguments[1]) == "--small";
    const CudaStatus status = probeCuda();
    if (!status.table) {
        std::printf("no slices to check: %s\n", status.reason.c_str());
        return 2;
    }
    const PipewrightCudaTable& table = *status.table;
    std::array<std::int32_t, slices> wanted{}, granted{};
    std::array<void*, slices> contexts{};
    wanted.fill(status.devices.front().multiprocessors / slices / 8 * 8);
    if (table.createSlices(0, wanted.data(), slices, granted.data(), contexts.data()) != 0) {
        std::printf("no slices to check: %s\n", table.lastError());
        return 2;
    }
    std::array<Slice, slices> all;
    for (int i = 0; i < slices; ++i) {
        all[i].context = contexts[i];
        all[i].granted = granted[i];
        if (table.createStream(0, contexts[i], &all[i].stream) != 0) {
            std::printf("no stream of a slice: %s\n", table.lastError());
            return 2;
        }
        require(cudaEventCreate(&all[i].begin), "create an event");
        require(cudaEventCreate(&all[i].end), "create an event");
    }
    // So many blocks that each multiprocessor has some.
    const int blocks = (small ? 2 : 16) * *std::max_element(granted.begin(), granted.end()),
              rounds = small ? 2 : 20'000;
    int wrong = 0;
    {
        Memory<unsigned> seen(std::size_t(slices) * std::size_t(blocks));
        Memory<float> result(1);
        timesOf(all, blocks, rounds, seen, result.span().data()); // warms up
        const float alone = timesOf(std::span(all).first(1), blocks, rounds, seen, result.span().data()).front();
        const std::vector<float> together = timesOf(all, blocks, rounds, seen, result.span().data());
        const std::vector<unsigned> numbers = seen.read();
        std::set<unsigned> taken;
        for (int i = 0; i < slices; ++i) {
            const auto first = numbers.begin() + std::ptrdiff_t(i) * blocks;
            const std::set<unsigned> own(first, first + blocks);
            std::size_t shared = 0;
            for (const unsigned each : own)
                shared += !taken.insert(each).second;
            wrong += shared > 0 || int(own.size()) > all[i].granted;
            std::printf("slice %d: %d multiprocessors granted, %zu used, %u to %u, %zu of another slice%s\n", i,
                        all[i].granted, own.size(), *own.begin(), *own.rbegin(), shared,
                        shared > 0 || int(own.size()) > all[i].granted ? " WRONG" : "");
        }
        std::printf("the same work: %.3f ms on one slice alone, %.3f ms on each of four side by side (%.2f times)\n",
                    alone, *std::max_element(together.begin(), together.end()),
                    *std::max_element(together.begin(), together.end()) / std::max(alone, 1e-6f));
    }
    for (Slice& slice : all) {
        cudaEventDestroy(slice.begin);
        cudaEventDestroy(slice.end);
        table.destroyStream(slice.stream);
        table.destroySlice(slice.context);
    }
    std::printf("%d wrong\n", wrong);
    return wrong > 0;
}
