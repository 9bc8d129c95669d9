// SPDX-License-Identifier: GPL-3.0-or-later
// Where in a device's memory every buffer lives, decided before anything runs. The Program's instruction
// lists say when each buffer begins and ends, so one block of memory (the arena) and fixed offsets are
// enough: nothing is allocated during a step. Best fit in instruction order; O(n log n) per device.
#pragma once

#include "core/program/program.h"

#include <utility>
#include <vector>

namespace pipewright {

/// The instructions of a device between which one of its buffers that are not persistent lives. A buffer
/// begins with the instruction that defines it (a received one when its receive is posted) and ends with
/// its Free; workspace without one ends with the instruction that it began with.
struct BufferLife {
    BufferId buffer = none;
    std::uint32_t begin = 0; ///< index of the instruction, live while it runs
    std::uint32_t end = 0;   ///< index of the Free, or `begin` when transient
    bool transient() const { return begin == end; }
};

/// Sorted by `begin`, and among equals in the order of the task's writes. Throws Error when the list frees
/// what does not live, a buffer begins twice, or one is never freed. O(instructions + operands).
std::vector<BufferLife> lifetimes(const Program& program, int device);

struct ArenaPlan {
    static constexpr Bytes alignment = 64;
    std::vector<Bytes>
        offsets;         ///< per lifetime, in the arena of its memory: the device's or, if it is there, the host's
    Bytes bytes = 0;     ///< of the whole arena; at least the peak of what lives in it
    Bytes hostBytes = 0; ///< the same in the host's memory
};
ArenaPlan planArena(const Program& program, std::span<const BufferLife> lifetimes);

/// A device's buffers in two blocks of its memory: one for what comes and goes, one for what stays.
struct BufferPlaces {
    std::vector<BufferLife> lifetimes;
    ArenaPlan arena;                                 ///< of these
    std::vector<std::pair<BufferId, Bytes>> lasting; ///< persistent buffers and where they begin in their block
    Bytes persistent = 0;                            ///< of these
    Bytes lastingBytes = 0;                          ///< of their block, with what aligns them
};
/// Throws Error as lifetimes() does.
BufferPlaces planBuffers(const Program& program, int device);

} // namespace pipewright
