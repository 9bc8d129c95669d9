// SPDX-License-Identifier: GPL-3.0-or-later
// Overlapped pairs with parts for devicesimulation.h: tries all orders of the parts.
#pragma once

#include "core/design/blockparts.h"
#include "core/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace pipewright::test {

/// The block's parts scaled to the time of its microbatch: their borders in proportion, rounded. A block without parts
/// is one part.
inline std::vector<BlockPart> scaledParts(std::vector<BlockPart> parts, Nanoseconds time)
{
    if (parts.empty())
        parts.push_back({"whole", time, PartStream::Compute, true});
    double all = 0, at = 0;
    for (const BlockPart& part : parts)
        all += static_cast<double>(part.time);
    Nanoseconds border = 0;
    for (BlockPart& part : parts) {
        at += static_cast<double>(part.time);
        const Nanoseconds next = all > 0 ? std::llround(static_cast<double>(time) * at / all) : Nanoseconds{0};
        part.time = next - border;
        border = next;
    }
    return parts;
}

struct PairState {
    std::array<std::size_t, 2> issued{};
    std::array<Nanoseconds, 2> streamFree{}, blockReady{};
};

/// The earliest end of the remaining parts of both blocks, or their end in the stated order.
inline Nanoseconds endOfParts(const std::array<std::vector<BlockPart>, 2>& parts, const PairState& at,
                              const PartSequence* stated)
{
    constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
    Nanoseconds best = never;
    for (const std::size_t block : {std::size_t{0}, std::size_t{1}}) {
        if (at.issued[block] == parts[block].size()
            || (stated != nullptr && (*stated)[at.issued[0] + at.issued[1]] != (block == 1)))
            continue;
        PairState after = at;
        const BlockPart& part = parts[block][after.issued[block]++];
        Nanoseconds& stream = after.streamFree[part.stream == PartStream::Compute ? 0 : 1];
        stream = std::max(stream, after.blockReady[block]) + part.time;
        if (part.awaited)
            after.blockReady[block] = stream;
        best = std::min(best, endOfParts(parts, after, stated));
    }
    return best == never ? std::max(at.streamFree[0], at.streamFree[1]) : best;
}

} // namespace pipewright::test
