// SPDX-License-Identifier: GPL-3.0-or-later
// Helpers to vectorise the host loops with the same sums in every run: code versions for wider registers chosen at
// start-up, sums in a fixed number of lanes, and an exponential without a library call. Floating-point rules are never
// relaxed and every order of summation is explicit: all versions of a loop give the same bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

/// Put before a hot function: compiled once per register width, the best one bound when the program loads.
/// Not under sanitizers, whose instrumentation must not run that early.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)                  \
    && !defined(__SANITIZE_THREAD__)
#define PIPEWRIGHT_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PIPEWRIGHT_VECTOR_CLONES
#endif

/// Put before a loop whose iterations do not depend on each other.
#if defined(__GNUC__) && !defined(__clang__)
#define PIPEWRIGHT_INDEPENDENT _Pragma("GCC ivdep")
#else
#define PIPEWRIGHT_INDEPENDENT
#endif

namespace pipewright::kernels {

inline constexpr std::size_t lanes = 16;

/// The sum of term(0) … term(count - 1), always in the same order: sixteen running sums, then the tail,
/// then a tree. Sixteen floats fill the widest registers and narrower ones compute the same numbers.
template<class Term>
[[gnu::always_inline]] inline float sumInLanes(std::size_t count, Term term)
{
    std::array<float, lanes> sums{};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane)
            sums[lane] += term(i + lane);
    for (std::size_t lane = 0; i < count; ++i, ++lane)
        sums[lane] += term(i);
    for (std::size_t width = lanes / 2; width > 0; width /= 2)
        for (std::size_t lane = 0; lane < width; ++lane)
            sums[lane] += sums[lane + width];
    return sums[0];
}

/// The largest of `count` values, at least one.
[[gnu::always_inline]] inline float maxInLanes(std::size_t count, const float* values)
{
    std::array<float, lanes> largest;
    largest.fill(values[0]);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane)
            largest[lane] = largest[lane] < values[i + lane] ? values[i + lane] : largest[lane];
    float result = largest[0];
    for (std::size_t lane = 1; lane < lanes; ++lane)
        result = result < largest[lane] ? largest[lane] : result;
    for (; i < count; ++i)
        result = result < values[i] ? values[i] : result;
    return result;
}

/// e^x to about two units in the last place for |x| up to 87, beyond which x is clamped. x = n · ln 2 + r
/// with |r| <= ln 2 / 2; e^r is its Taylor sum to r^7 (remainder under 6e-9) and 2^n is put together from
/// bits. n comes out of adding 1.5 · 2^23, after which the low mantissa bits are the integer.
[[gnu::always_inline]] inline float exponential(float x)
{
    constexpr float rounder = 12582912.0f;
    constexpr float ln2High = 0.693359375f, ln2Low = -2.12194440e-4f; // high part: 9 bits, so n · high is exact
    x = x < -87.0f ? -87.0f : x;
    x = x > 87.0f ? 87.0f : x;
    const float shifted = x * 1.44269504f + rounder;
    const float n = shifted - rounder;
    const float r = (x - n * ln2High) - n * ln2Low;
    float sum = 1.0f / 5040;
    sum = sum * r + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    const auto exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(rounder);
    return sum * std::bit_cast<float>((exponent + 127) << 23);
}

} // namespace pipewright::kernels
