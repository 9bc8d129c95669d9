// SPDX-License-Identifier: GPL-3.0-or-later
// The one global order that every device's list is a projection of: blocks by start time, blocks that
// start together in an order that respects their dependencies.
#pragma once

#include "core/schedule/ordergraph.h"

namespace pipewright {

/// Sorts run.sequence by run.start, keeping the given order among equals: since no block starts before
/// its inputs end, the result is topological too. A radix sort, O(blocks), since this is on the path of
/// every edit.
std::vector<BlockIndex> sortedByStart(const OrderRun& run);

} // namespace pipewright
