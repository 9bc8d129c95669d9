// SPDX-License-Identifier: GPL-3.0-or-later
// Elementwise kernels with vector loads and stores, if all operands are 16-byte aligned: a thread handles a line of
// elements, 8 if any operand is bf16, else 4. Remaining or unaligned elements have one thread each. Each element is
// computed in the same way, with the same bits, in both cases.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stored.cuh"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace pipewright::kernels::cuda {

/// An operand that is written without being read before.
template<typename Element>
struct Fresh {
    Element* at = nullptr;
};
template<typename Element>
Fresh<Element> fresh(std::span<float> operand)
{
    return {reinterpret_cast<Element*>(operand.data())};
}

/// Elements in registers.
template<typename Element, int width>
struct alignas(16) Line {
    Element elements[width];
};

template<typename Element, int width, typename At>
__device__ auto* lineOf(At* at, std::size_t line)
{
    using Of = std::conditional_t<std::is_const_v<At>, const Line<Element, width>, Line<Element, width>>;
    return reinterpret_cast<Of*>(at + line * width);
}

/// Loads and stores of an operand that is read (In), written (Fresh), or both (Out).
template<typename Operand>
struct Part;
template<typename E>
struct Part<In<E>> {
    using Element = E;
    template<int width>
    static __device__ void load(Line<E, width>& into, In<E> from, std::size_t line)
    {
        into = *lineOf<E, width>(from.at, line);
    }
    template<int width>
    static __device__ void store(const Line<E, width>&, In<E>, std::size_t)
    {
    }
    static __device__ float element(const E& of) { return widened(of); }
};
template<typename E>
struct Part<Fresh<E>> {
    using Element = E;
    template<int width>
    static __device__ void load(Line<E, width>&, Fresh<E>, std::size_t)
    {
    }
    template<int width, typename To>
    static __device__ void store(const Line<E, width>& line, To to, std::size_t at)
    {
        *lineOf<E, width>(to.at, at) = line;
    }
    static __device__ typename Out<E>::Place element(E& of) { return {of}; }
};
template<typename E>
struct Part<Out<E>> : Part<Fresh<E>> {
    template<int width>
    static __device__ void load(Line<E, width>& into, Out<E> from, std::size_t line)
    {
        into = *lineOf<E, width>(from.at, line);
    }
};

/// The line of operand number i.
template<std::size_t i, typename Operand, int width>
struct Held {
    Line<typename Part<Operand>::Element, width> line;
};
template<int width, typename Numbers, typename... Operands>
struct AllHeld;
template<int width, std::size_t... i, typename... Operands>
struct AllHeld<width, std::index_sequence<i...>, Operands...> : Held<i, Operands, width>... {
    template<typename Each>
    __device__ void compute(std::size_t at, Each& each, const Operands&... operands)
    {
        (Part<Operands>::load(Held<i, Operands, width>::line, operands, at), ...);
#pragma unroll
        for (int k = 0; k < width; ++k)
            each(Part<Operands>::element(Held<i, Operands, width>::line.elements[k])...);
        (Part<Operands>::store(Held<i, Operands, width>::line, operands, at), ...);
    }
};

/// The first threads handle lines, the following ones the remaining elements.
template<int width, typename Each, typename... Operands>
__global__ void forLines(std::size_t lines, std::size_t left, Each each, Operands... operands)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < lines) {
        AllHeld<width, std::index_sequence_for<Operands...>, Operands...> held;
        held.compute(i, each, operands...);
    } else if (const std::size_t at = lines * width + (i - lines); i - lines < left)
        each(Part<Operands>::element(operands.at[at])...);
}

/// Calls each(element of every operand) for every index below `count`. An element is a float if the operand is only
/// read, else an assignable place.
template<typename Each, typename... Operands>
void launchLines(const Context& context, std::size_t count, Each each, Operands... operands)
{
    constexpr int width = int(16 / std::min({sizeof(typename Part<Operands>::Element)...}));
    const bool aligned = ((reinterpret_cast<std::uintptr_t>(operands.at) % 16 == 0) && ...);
    const std::size_t lines = aligned ? count / width : 0, left = count - lines * width;
    if (count > 0)
        forLines<width><<<blocksFor(lines + left), blockSize, 0, context.stream>>>(lines, left, each, operands...);
}

} // namespace pipewright::kernels::cuda
