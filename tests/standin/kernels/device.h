// SPDX-License-Identifier: GPL-3.0-or-later
// The device-side CUDA C++ that our kernels use, for a host compiler; transform.cpp includes it at the top of every
// .cu. Anything that is missing here does not compile. transform.cpp rewrites launches and shared variables into
// standin::launch and standin::shared.
#pragma once

#include "engine.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>
#include <type_traits>

#undef __global__
#undef __device__
#undef __host__
#define __global__
#define __device__
#define __host__

namespace standin {

/// The launch configuration between <<< and >>>.
struct Configuration {
    Configuration(dim3 grid, dim3 block, std::size_t sharedBytes = 0, cudaStream_t stream = nullptr)
        : grid{grid.x, grid.y, grid.z}, block{block.x, block.y, block.z}, sharedBytes(sharedBytes), stream(stream)
    {
    }

    Extent grid, block;
    std::size_t sharedBytes;
    cudaStream_t stream;
};

/// Collects the parts of an argument that may be addresses, so that the runtime can check whose memory they are in.
template<typename Argument>
void note(const Argument& argument, Launch& launch)
{
    static_assert(std::is_trivially_copyable_v<Argument>);
    if constexpr (std::is_pointer_v<Argument>) {
        launch.pointers.push_back(argument);
    } else if constexpr (std::is_class_v<Argument> && alignof(Argument) >= alignof(void*)) {
        Argument copy = argument;
#if __has_builtin(__builtin_clear_padding)
        __builtin_clear_padding(&copy); // padding may contain half of an old address
#endif
        for (std::size_t at = 0; at + sizeof(void*) <= sizeof(Argument); at += sizeof(void*)) {
            const void* word = nullptr;
            std::memcpy(&word, reinterpret_cast<const char*>(&copy) + at, sizeof word);
            launch.words.push_back(word);
        }
    }
}

template<typename Kernel, typename... Arguments>
void launch(const char* kernel, const char* place, const Configuration& how, Kernel thread, Arguments... arguments)
{
    Launch made{kernel,
                place,
                how.grid,
                how.block,
                how.sharedBytes,
                how.stream,
                [thread, arguments...] { thread(arguments...); },
                0,
                1,
                {},
                {}};
    (note(arguments, made), ...);
    pipewrightStandinLaunch(made);
}

/// The block's shared variable for Key, a type that is unique to one place in the source.
template<typename Variable, typename Key>
Variable& shared()
{
    static_assert(std::is_trivial_v<std::remove_all_extents_t<Variable>>);
    static constexpr char key = 0;
    return *static_cast<Variable*>(sharedMemory(&key, sizeof(Variable), alignof(Variable)));
}

template<typename Value>
Value shuffle(const char* what, unsigned mask, Value value, unsigned lane, const Where& where)
{
    static_assert(sizeof(Value) == 4 || sizeof(Value) == 8);
    using Bits = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<Value>(Bits(exchangeInWarp(what, mask, std::bit_cast<Bits>(value), lane, where)));
}

/// Two bf16 numbers in a word, `low` in the lower half.
inline std::uint32_t bf16Pair(float high, float low)
{
    const auto narrowed = [](float value) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    };
    return narrowed(high) << 16 | narrowed(low);
}

inline std::uint64_t globalTimer()
{
    return std::uint64_t(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

} // namespace standin

#define threadIdx (::standin::currentThread)
#define blockIdx (::standin::currentBlock)
#define blockDim (::standin::currentBlockSize)
#define gridDim (::standin::currentGridSize)

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE())
{
    standin::waitForBlock({file, line});
}

template<typename Value>
Value __shfl_xor_sync(unsigned mask, Value value, int lanes, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE())
{
    return standin::shuffle("__shfl_xor_sync", mask, value,
                            standin::threadNumber() % standin::warpLanes ^ unsigned(lanes), {file, line});
}

inline unsigned __ballot_sync(unsigned mask, bool vote, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE())
{
    return standin::voteInWarp("__ballot_sync", mask, vote, {file, line});
}

/// One plus the index of the lowest set bit; 0: no bit is set.
inline int __ffs(int bits)
{
    return bits == 0 ? 0 : std::countr_zero(unsigned(bits)) + 1;
}

inline int __popc(unsigned bits)
{
    return std::popcount(bits);
}

inline unsigned __float_as_uint(float value)
{
    return std::bit_cast<unsigned>(value);
}

inline float __uint_as_float(unsigned bits)
{
    return std::bit_cast<float>(bits);
}

inline int min(int a, int b)
{
    return a < b ? a : b;
}

inline float rsqrtf(float value)
{
    return 1 / std::sqrt(value);
}
