// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a block: what it does one after the other, each on one of its device's two streams. A block alone takes
// the sum of them; in an overlapped pair two lists share the streams (core/program/partorder.h). Parts have times and
// no buffers of their own: what the block keeps and needs is counted for the whole of it.
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
    /// Whether the parts behind it need its result. Nothing needs weight gradients but the block's end: parts of the
    /// other stream need not wait for them.
    bool awaited = true;
    bool operator==(const BlockPart&) const = default;
};

constexpr int maxParts = 256; ///< of one block: sixty layers of four

Nanoseconds sumOf(std::span<const BlockPart> parts);

/// The same parts, in proportion, of a block that takes `time`: their sum is that to the nanosecond. Evenly where the
/// sum was 0. O(parts).
void fitParts(std::vector<BlockPart>& parts, Nanoseconds time);

/// What lies between two shares of the block's time, 0 to 1: whole parts, and pieces of those that are cut. O(parts).
std::vector<BlockPart> cutOf(std::span<const BlockPart> parts, double from, double to);

/// Behind one another; of neighbours on one stream with the same name and `awaited`, one part.
void appendParts(std::vector<BlockPart>& list, std::span<const BlockPart> more);

} // namespace pipewright
