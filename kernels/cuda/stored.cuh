// SPDX-License-Identifier: GPL-3.0-or-later
// Values in memory, fp32 or bf16: kernels are written once for both and compute in fp32; a result is rounded when it is
// stored. bf16 values are 16-bit patterns, the upper halves of fp32 numbers.
#pragma once

#include "kernels/cuda/kernels.h"

#include <cstdint>
#include <span>

namespace pipewright::kernels::cuda {

using Bf16 = std::uint16_t;

__device__ inline float widened(float value)
{
    return value;
}
__device__ inline float widened(Bf16 bits)
{
    return __uint_as_float(std::uint32_t(bits) << 16);
}

/// Rounds to nearest, ties to even.
__device__ inline Bf16 narrowed(float value)
{
    const std::uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7fffffff) > 0x7f800000) // NaN
        return Bf16(bits >> 16 | 0x40);
    return Bf16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__device__ inline void store(float& place, float value)
{
    place = value;
}
__device__ inline void store(Bf16& place, float value)
{
    place = narrowed(value);
}

/// An operand that is read.
template<typename Element>
struct In {
    const Element* at = nullptr;

    __device__ float operator[](std::int64_t i) const { return widened(at[i]); }
    __host__ __device__ In operator+(std::int64_t by) const { return {at + by}; }
    __host__ __device__ explicit operator bool() const { return at; }
};

/// An operand that is written or added to.
template<typename Element>
struct Out {
    Element* at = nullptr;

    struct Place {
        Element& element;
        __device__ operator float() const { return widened(element); }
        __device__ void operator=(float value) const { store(element, value); }
        __device__ void operator+=(float value) const { store(element, widened(element) + value); }
    };
    __device__ Place operator[](std::int64_t i) const { return {at[i]}; }
    __host__ __device__ Out operator+(std::int64_t by) const { return {at + by}; }
};

/// An operand of a call with elements of this type.
template<typename Element>
In<Element> in(std::span<const float> operand)
{
    return {reinterpret_cast<const Element*>(operand.data())};
}
template<typename Element>
Out<Element> out(std::span<float> operand)
{
    return {reinterpret_cast<Element*>(operand.data())};
}

/// Calls launch(zero of the element type of the call's operand `number`).
template<typename Launch>
void withElement(const Context& context, int number, Launch launch)
{
    if (context.stored >> number & 1)
        launch(Bf16());
    else
        launch(float());
}

} // namespace pipewright::kernels::cuda
