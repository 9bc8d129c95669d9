// SPDX-License-Identifier: GPL-3.0-or-later
// The one global order that every device's list is a projection of: blocks by start time, blocks that
// start together in an order that respects their dependencies.
#pragma once

#include "core/schedule/ordergraph.h"

namespace pipewright {

struct GlobalOrder {
    std::vector<BlockIndex> blocks;
    std::vector<std::uint32_t>
        instants; ///< positions in `blocks` at which those of a later start begin; 0 first, their number last
    std::vector<Nanoseconds> starts; ///< per instant
};

/// All blocks of a run by run.start; among equals device after device, but first those that take no time, as they
/// ran. Since no block starts before its inputs end, the result is topological; and since ties depend on nothing else,
/// it repeats itself where the start times do. A radix sort, O(blocks), since this is on the path of every edit.
GlobalOrder sortedByStart(const OrderRun& run);

} // namespace pipewright
