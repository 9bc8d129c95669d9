// SPDX-License-Identifier: GPL-3.0-or-later
// What gpucheck judges by: memory of the GPU, and a kernel's result against its reference. The error of a tensor is the
// norm of the difference over the norm of the reference, so that values near zero do not decide; its limit is stated
// with each check. Every kernel runs twice and must repeat its bits.
#pragma once

#include "kernels/cuda/kernels.h"
#include "kernels/numbers.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <span>
#include <string>
#include <vector>

namespace pipewright::test {

// Of results in fp32: of one operation on each element, and of sums, whose order is the GPU's own; and of products
// whose factors are rounded to bf16, which keeps 8 bits.
// Attention in bf16 rounds probabilities and the gradients of scores, of factors that are bf16 already.
inline constexpr double elementError = 1e-6, sumError = 1e-5, bf16Error = 2e-2, bf16AttentionError = 5e-3;

inline int failures = 0;
/// Fewer rows, tokens and products: for a CPU that plays the GPU.
inline bool small = false;

inline void require(cudaError_t code, const char* what)
{
    if (code == cudaSuccess)
        return;
    std::printf("%s: %s\n", what, cudaGetErrorString(code));
    std::exit(2);
}

template<typename Element>
class Memory {
public:
    explicit Memory(std::size_t count) : m_count(count)
    {
        require(cudaMalloc(&m_data, count * sizeof(Element) + 1), "cudaMalloc");
        require(cudaMemset(m_data, 0, count * sizeof(Element)), "cudaMemset");
    }
    explicit Memory(const std::vector<Element>& values) : Memory(values.size())
    {
        require(cudaMemcpy(m_data, values.data(), m_count * sizeof(Element), cudaMemcpyHostToDevice),
                "copy to the GPU");
    }
    ~Memory() { cudaFree(m_data); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::span<Element> span() { return {m_data, m_count}; }
    std::vector<Element> read() const
    {
        std::vector<Element> values(m_count);
        require(cudaMemcpy(values.data(), m_data, m_count * sizeof(Element), cudaMemcpyDeviceToHost), "run the kernel");
        return values;
    }

private:
    Element* m_data = nullptr;
    std::size_t m_count;
};
using Floats = Memory<float>;

/// Numbers that bf16 can hold, and how it holds them.
struct Bf16Values {
    explicit Bf16Values(Values from) : values(std::move(from))
    {
        for (double& value : values) {
            patterns.push_back(std::uint16_t((std::bit_cast<std::uint32_t>(float(value)) + 0x8000) >> 16));
            value = std::bit_cast<float>(std::uint32_t(patterns.back()) << 16);
        }
    }
    Values values;
    std::vector<std::uint16_t> patterns;
};

/// ‖result - expected‖ / ‖expected‖; infinite for other sizes, for what is no number, and for anything but zeros where
/// zeros are expected.
template<typename Number>
double errorOf(const std::vector<Number>& result, const Values& expected)
{
    if (result.size() != expected.size())
        return INFINITY;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        difference += (double(result[i]) - expected[i]) * (double(result[i]) - expected[i]);
        norm += expected[i] * expected[i];
    }
    if (difference == 0)
        return 0;
    const double error = std::sqrt(difference / norm);
    return error < INFINITY ? error : INFINITY;
}

/// What a warm call takes on the default stream.
template<typename Call>
double millisecondsOf(Call call)
{
    constexpr int repeats = 10;
    cudaEvent_t begin = nullptr, end = nullptr;
    require(cudaEventCreate(&begin), "create an event");
    require(cudaEventCreate(&end), "create an event");
    for (int i = 0; i < repeats + 2; ++i) {
        if (i == 2) // warm by now
            require(cudaEventRecord(begin), "record an event");
        call();
    }
    require(cudaEventRecord(end), "record an event");
    require(cudaEventSynchronize(end), "run it");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "measure");
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return double(milliseconds) / repeats;
}

/// `compute` returns what a kernel gave.
template<typename Compute>
void check(const std::string& name, const Values& expected, double limit, Compute compute)
{
    const auto first = compute(), second = compute();
    require(kernels::cuda::takeLaunchError(), name.c_str());
    const bool repeats =
        first.size() == second.size() && std::memcmp(first.data(), second.data(), first.size() * sizeof first[0]) == 0;
    const double error = errorOf(first, expected);
    failures += !(error <= limit && repeats);
    std::printf("%-28s error %.2e of %.0e %s%s\n", name.c_str(), error, limit, error <= limit ? "ok" : "WRONG",
                repeats ? "" : ", and NOT THE SAME BITS TWICE");
}

} // namespace pipewright::test
