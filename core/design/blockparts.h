// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a block: its sequence of steps, each on one of its device's two streams. A single block takes the sum of
// its parts; in an overlapped pair two lists share the streams (core/program/partorder.h). Parts have times but no
// buffers of their own: saved bytes and workspace belong to the whole block.
#pragma once

#include "core/base/units.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class PartStream : std::uint8_t { Compute, Communication };
constexpr int partStreamCount = 2;
constexpr std::string_view nameOf(PartStream stream) ///< empty behind the last one
{
    switch (stream) {
    case PartStream::Compute: return "compute";
    case PartStream::Communication: return "communication";
    }
    return {};
}

struct BlockPart {
    std::string name; ///< "attention", "dispatch"
    Nanoseconds time = 0;
    PartStream stream = PartStream::Compute;
    /// Whether the parts after it need its result. Only the block's end needs weight gradients, so parts on the other
    /// stream do not wait for them.
    bool awaited = true;
    bool operator==(const BlockPart&) const = default;
};

constexpr int maxParts = 512; ///< of one block: eighty layers of six

Nanoseconds sumOf(std::span<const BlockPart> parts);

/// Scales the parts to a block that takes `time`: their sum equals it to the nanosecond. Parts with sum 0 get equal
/// times. O(parts).
void fitParts(std::vector<BlockPart>& parts, Nanoseconds time);

/// The parts between two fractions of the block's time, 0 to 1: whole parts, and pieces of those that are cut.
/// O(parts).
std::vector<BlockPart> cutOf(std::span<const BlockPart> parts, double from, double to);

/// Appends a list; merges neighbours on the same stream with the same name and `awaited`.
void appendParts(std::vector<BlockPart>& list, std::span<const BlockPart> more);

} // namespace pipewright
