// SPDX-License-Identifier: GPL-3.0-or-later
// Moving a block together with what follows from it. Order is the schedule, so nothing need be pushed along a
// lane: times there follow by themselves. What a plain move leaves behind is the rest of the same microbatch on the
// other devices, which was placed for when the block used to run: moved earlier, it leaves the gain unused; moved
// later, it makes them wait. A ripple takes it along.
#pragma once

#include "core/schedule/edits.h"

namespace pipewright {

/// The placed blocks of a microbatch that come after `block` on its way: forwards of later stages, then the
/// backwards. By device, in order.
std::vector<Block> rippleOf(const Schedule& schedule, const Block& block);

/// Moves `block` past so many blocks of its lane (negative: to earlier), and rippleOf() past as many in theirs, all
/// keeping their order. Where that cannot run, the others go as far as they all can; `block` itself goes the whole
/// way or the edit is refused. O(places x blocks).
EditResult rippleBlock(const Schedule& schedule, const Block& block, int places,
                       std::span<const SkipConnection> skips = {});

} // namespace pipewright
