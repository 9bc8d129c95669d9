// SPDX-License-Identifier: GPL-3.0-or-later
// Small kernels, each in a correct version and in one with a fault that a GPU may hide: `faults NAME` runs the faulty
// one, `faults right` all correct ones. faults.sh has the message that must catch each fault.
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

constexpr unsigned threads = 64;
constexpr int size = int(threads);

__device__ float warpSum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

/// out[t] = in[t + 1], cyclically, through shared memory.
template<bool wrong>
__global__ void rotate(const float* in, float* out)
{
    __shared__ float all[threads];
    all[threadIdx.x] = in[threadIdx.x];
    if constexpr (!wrong)
        __syncthreads();
    out[threadIdx.x] = all[(threadIdx.x + 1) % threads];
}

/// The same twice. Without the barrier between the rounds a slow thread reads what a fast one wrote in the next round.
template<bool wrong>
__global__ void rotateTwice(const float* in, float* out)
{
    __shared__ float all[threads];
    float value = in[threadIdx.x];
    for (int round = 0; round < 2; ++round) {
        all[threadIdx.x] = value;
        __syncthreads();
        value = all[(threadIdx.x + 1) % threads];
        if constexpr (!wrong)
            __syncthreads();
    }
    out[threadIdx.x] = value;
}

/// A shuffle between them is no barrier.
template<bool wrong>
__global__ void rotateByShuffle(const float* in, float* out)
{
    __shared__ float all[threads];
    all[threadIdx.x] = in[threadIdx.x];
    if constexpr (wrong)
        out[threadIdx.x] = warpSum(1);
    else
        __syncthreads();
    const unsigned other = threadIdx.x ^ 1;
    out[threadIdx.x] = all[other];
}

template<bool wrong>
__global__ void indexOfShared(const float* in, float* out)
{
    __shared__ float before[threads], all[threads];
    before[threadIdx.x] = 0;
    all[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = all[threadIdx.x + (wrong ? 1 : 0)] + before[threadIdx.x];
}

template<bool wrong>
__global__ void indexOfMemory(const float* in, float* out)
{
    out[threadIdx.x] = in[threadIdx.x + (wrong ? 1 : 0)];
}

template<bool wrong>
__global__ void returnBeforeBarrier(const float* in, float* out)
{
    __shared__ float all[threads];
    all[threadIdx.x] = in[threadIdx.x];
    if (wrong && threadIdx.x == 0)
        return;
    __syncthreads();
    out[threadIdx.x] = all[threads - 1 - threadIdx.x];
}

template<bool wrong>
__global__ void barriersOfBranches(const float* in, float* out)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x % 2 == 0 || !wrong)
        __syncthreads();
    else
        __syncthreads();
}

/// Half of a warp returns before the other half needs its values.
template<bool wrong>
__global__ void shuffleWithAbsent(const float* in, float* out)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (wrong && threadIdx.x % 32 >= 16)
        return;
    out[threadIdx.x] = warpSum(in[threadIdx.x]);
}

/// Half of a warp waits for the other half, which waits for the whole block.
template<bool wrong>
__global__ void shuffleAgainstBarrier(const float* in, float* out)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (wrong && threadIdx.x % 32 < 16)
        __syncthreads();
    out[threadIdx.x] = warpSum(in[threadIdx.x]);
}

template<bool wrong>
__global__ void unwrittenShared(const float* in, float* out)
{
    __shared__ float sum[1];
    if (!wrong && threadIdx.x == 0)
        sum[0] = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        sum[0] += in[0];
    __syncthreads();
    out[threadIdx.x] = sum[0];
}

/// Blocks of one thread. The faulty kernels write all results to one place (blocksWrite), or read the result of the
/// previous block (blocksRead).
template<bool wrong>
__global__ void blocksWrite(const float* in, float* out)
{
    out[wrong ? 0 : blockIdx.x] = in[blockIdx.x];
}

template<bool wrong>
__global__ void blocksRead(const float* in, float* out)
{
    out[blockIdx.x] = in[blockIdx.x] + (wrong && blockIdx.x > 0 ? out[blockIdx.x - 1] : 0.0f);
}

class Memory {
public:
    explicit Memory(std::size_t count) : m_count(count)
    {
        cudaMalloc(&m_data, count * sizeof(float));
        for (std::size_t i = 0; i < count; ++i)
            m_data[i] = float(i + 1); // the stand-in's memory is the host's
    }
    ~Memory() { cudaFree(m_data); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    float* data() { return m_data; }
    std::vector<float> values() const { return {m_data, m_data + m_count}; }

private:
    float* m_data = nullptr;
    std::size_t m_count;
};

/// Runs a kernel and checks that it writes the expected values.
template<auto kernel, typename Expected>
int run(unsigned blocks, unsigned threadsOfBlock, Expected expected)
{
    Memory in(threads), out(threads);
    kernel<<<blocks, threadsOfBlock>>>(in.data(), out.data());
    for (int i = 0; i < size; ++i)
        if (!(out.values()[std::size_t(i)] == expected(i))) {
            std::printf("wrong result: out[%d] is %g instead of %g\n", i, double(out.values()[std::size_t(i)]),
                        double(expected(i)));
            return 1;
        }
    return 0;
}

int runAll(std::string_view wanted)
{
    int result = 2; // no such fault
#define CASE(name, blocks, threadsOfBlock, expected)                                                                   \
    if (wanted == #name || wanted == "right") {                                                                        \
        const auto each = [](int i) { return float(expected); };                                                       \
        const int code = wanted == "right" ? run<name<false>>(blocks, threadsOfBlock, each)                            \
                                           : run<name<true>>(blocks, threadsOfBlock, each);                            \
        if (code != 0)                                                                                                 \
            return code;                                                                                               \
        result = 0;                                                                                                    \
    }
    CASE(rotate, 1, threads, (i + 1) % size + 1)
    CASE(rotateTwice, 1, threads, (i + 2) % size + 1)
    CASE(rotateByShuffle, 1, threads, (i ^ 1) + 1)
    CASE(indexOfShared, 1, threads, i + 1)
    CASE(indexOfMemory, 1, threads, i + 1)
    CASE(returnBeforeBarrier, 1, threads, size - i)
    CASE(barriersOfBranches, 1, threads, i + 1)
    CASE(shuffleWithAbsent, 1, threads, i / 32 * 1024 + 528)
    CASE(shuffleAgainstBarrier, 1, threads, i / 32 * 1024 + 528)
    CASE(unwrittenShared, 1, threads, 1 + 0 * i)
    CASE(blocksWrite, threads, 1, i + 1)
    CASE(blocksRead, threads, 1, i + 1)
#undef CASE
    if (wanted == "blockTooLarge")
        return run<indexOfMemory<false>>(1, 1025, [](int) { return 0.0f; });
    return result;
}

} // namespace

int main(int count, char** arguments)
{
    const int result = runAll(count == 2 ? arguments[1] : "");
    if (result == 2)
        std::fprintf(stderr, "usage: %s right|FAULT\n", arguments[0]);
    return result;
}
