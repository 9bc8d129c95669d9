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

/// All blocks of a run, sorted by run.start. With equal starts, blocks that take no time come first, in the order in
/// which they ran, then the others by device. No block starts before its inputs end, so the result is topological. Ties
/// depend on nothing else, so the order repeats when the start times do. Radix sort, O(blocks), because every edit runs
/// it.
GlobalOrder sortedByStart(const OrderRun& run);

} // namespace pipewright
