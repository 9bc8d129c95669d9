// SPDX-License-Identifier: GPL-3.0-or-later
// A link between two processes, as one of them sees it. A receiver says when it is ready for its n-th
// transfer, with task and sizes; the sender answers with the data once its n-th send is posted and agrees, or
// with the news that it does not. So nothing moves before both sides are posted, data goes straight to where
// it belongs, and a wrong order is seen instead of repaired. With slots the source is free at once, and the
// copy waits in the sender's device, which counts the slots.
#pragma once

#include "executor/host/hoststream.h"
#include "executor/mpi/rankhub.h"

namespace pipewright {

/// `from` or `to` is the hub's own process. Links of one pair differ in `channel`. `storage`: remoteLinkStorage() bytes
/// of the sender's device, by its process; null where that is nothing.
std::unique_ptr<Link> createRemoteLink(RankHub& hub, int from, int to, const LinkOptions& options,
                                       std::unique_ptr<Allocation> storage, int channel = 0);
Bytes remoteLinkStorage(const LinkOptions& options);

/// Tells lists of sizes apart.
std::int64_t shapeOf(std::span<const Region> regions);

} // namespace pipewright
