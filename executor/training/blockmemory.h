// SPDX-License-Identifier: GPL-3.0-or-later
// The buffers of one block, told apart by kind, as the mathematics of a stage takes them.
#pragma once

#include "executor/runtime/stagework.h"
#include "executor/stage/stagelayout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

inline std::span<float> floats(Region region)
{
    return {reinterpret_cast<float*>(region.data), static_cast<std::size_t>(region.bytes) / sizeof(float)};
}

inline std::span<const std::int32_t> integers(Region region)
{
    return {reinterpret_cast<const std::int32_t*>(region.data),
            static_cast<std::size_t>(region.bytes) / sizeof(std::int32_t)};
}

inline std::span<std::byte> bytes(Region region)
{
    return {region.data, static_cast<std::size_t>(region.bytes)};
}

struct BlockMemory {
    StageMemory saved;
    std::span<std::byte> input, output; ///< activations, as they are stored
    std::span<std::byte> outputGrad, inputGrad;
    // Of skip connections: what they bring, forwards and backwards, and where they take it from.
    std::vector<std::span<const std::byte>> skipInputs, skipGrads;
    std::vector<std::span<std::byte>> skipOutputs, skipInputGrads;

    /// `piece`: how many pieces of its sequence come before it.
    explicit BlockMemory(const TaskContext& context, int piece = 0);
    BlockMemory(const BlockMemory&) = delete; // it holds a view of its own list
    BlockMemory& operator=(const BlockMemory&) = delete;

private:
    void place(const BufferView& view, bool written);

    /// Values that a forward kept for its input gradient, here or reloaded from the host: of this piece, or of an
    /// earlier one.
    void placeKept(const BufferView& view);

    int m_microbatch;
    std::vector<const float*> m_earlier; ///< oldest first
};

} // namespace pipewright
