// SPDX-License-Identifier: GPL-3.0-or-later
// Moves a block together with the dependent blocks of its microbatch. Within a lane the times follow from the order, so
// no other block needs to be moved there. After a plain move, the rest of the same microbatch on the other devices
// keeps the place for the block's old time: if the block was moved earlier, the gain stays unused; if later, these
// blocks must wait. A ripple moves them too.
#pragma once

#include "core/schedule/edits.h"

namespace pipewright {

/// Moves `block` past `places` blocks of its lane (negative: earlier), and the placed blocks of its microbatch that
/// depend on it (forwards of later stages, then the backwards) past as many in their lanes; all keep their order. If
/// the result cannot run, the other blocks move fewer places, as many as possible for all of them; `block` moves the
/// whole way or the edit is refused. O(places x blocks).
EditResult rippleBlock(const Schedule& schedule, const Block& block, int places,
                       std::span<const SkipConnection> skips = {});

} // namespace pipewright
