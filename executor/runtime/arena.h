// SPDX-License-Identifier: GPL-3.0-or-later
// The place of every buffer in a device's memory, decided before anything runs. The Program's instruction lists say
// when each buffer begins and ends, so one block of memory (the arena) with fixed offsets is enough: nothing is
// allocated during a step. Best fit in instruction order; O(n log n) per device.
#pragma once

#include "core/program/program.h"

#include <utility>
#include <vector>

namespace pipewright {

/// The lifetime of a transient buffer, as a range of its device's instructions. A buffer begins with the instruction
/// that defines it (a received one when its receive is posted) and ends with its Free; workspace without a Free ends
/// with the instruction at which it began.
struct BufferLife {
    BufferId buffer = none;
    std::uint32_t begin = 0; ///< index of the instruction, live while it runs
    std::uint32_t end = 0;   ///< index of the Free, or `begin` when transient
    bool transient() const { return begin == end; }
};

/// Sorted by `begin`, then in the order of the task's writes. Throws Error when the list frees a buffer that is not
/// live, a buffer begins twice, or one is never freed. O(instructions + operands).
std::vector<BufferLife> lifetimes(const Program& program, int device);

struct ArenaPlan {
    static constexpr Bytes alignment = 64;
    std::vector<Bytes>
        offsets;         ///< per lifetime, in the device's arena or, for buffers in the host's memory, the host's
    Bytes bytes = 0;     ///< of the whole arena; at least the peak of its live buffers
    Bytes hostBytes = 0; ///< of the arena in the host's memory
};
ArenaPlan planArena(const Program& program, std::span<const BufferLife> lifetimes);

/// A device's buffers in two blocks of its memory: one for transient and one for persistent buffers.
struct BufferPlaces {
    std::vector<BufferLife> lifetimes;
    ArenaPlan arena;                                 ///< of `lifetimes`
    std::vector<std::pair<BufferId, Bytes>> lasting; ///< persistent buffers and where they begin in their block
    Bytes persistent = 0;                            ///< bytes of `lasting`
    Bytes lastingBytes = 0;                          ///< of their block, including alignment
};
/// Throws Error as lifetimes() does.
BufferPlaces planBuffers(const Program& program, int device);

} // namespace pipewright
