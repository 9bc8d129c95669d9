// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/calls.h"

#include "kernels/host/simd.h"

#include <bit>
#include <cassert>

namespace pipewright::kernels {
namespace {

[[gnu::always_inline]] inline std::uint16_t narrowed(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const bool isNan = (bits & 0x7fffffff) > 0x7f800000;
    return static_cast<std::uint16_t>(isNan ? bits >> 16 | 0x40 : rounded);
}

[[gnu::always_inline]] inline float widened(std::uint16_t bits)
{
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

PIPEWRIGHT_VECTOR_CLONES
void widenLoop(std::size_t count, const std::uint16_t* from, float* to, bool add)
{
    if (add)
        for (std::size_t i = 0; i < count; ++i)
            to[i] += widened(from[i]);
    else
        for (std::size_t i = 0; i < count; ++i)
            to[i] = widened(from[i]);
}

PIPEWRIGHT_VECTOR_CLONES
void narrowLoop(std::size_t count, const float* from, std::uint16_t* to)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] = narrowed(from[i]);
}

PIPEWRIGHT_VECTOR_CLONES
void roundLoop(std::size_t count, float* values)
{
    for (std::size_t i = 0; i < count; ++i)
        values[i] = widened(narrowed(values[i]));
}

PIPEWRIGHT_VECTOR_CLONES
void roundAndNarrowLoop(std::size_t count, float* values, std::uint16_t* to)
{
    for (std::size_t i = 0; i < count; ++i) {
        to[i] = narrowed(values[i]);
        values[i] = widened(to[i]);
    }
}

} // namespace

void run(const Widen& call)
{
    assert(call.from.size() == call.to.size());
    widenLoop(call.from.size(), call.from.data(), call.to.data(), call.store == Store::Add);
}

void run(const Narrow& call)
{
    assert(call.from.size() == call.to.size());
    narrowLoop(call.from.size(), call.from.data(), call.to.data());
}

void run(const RoundToBf16& call)
{
    assert(call.to.empty() || call.to.size() == call.values.size());
    if (call.to.empty())
        roundLoop(call.values.size(), call.values.data());
    else
        roundAndNarrowLoop(call.values.size(), call.values.data(), call.to.data());
}

} // namespace pipewright::kernels
