// SPDX-License-Identifier: GPL-3.0-or-later
// A link between two processes, as seen by one of them. The receiver sends a request for its n-th transfer, with task
// and sizes. Once the sender has posted its n-th send, it answers with the data, or with a mismatch if task or sizes
// differ. So nothing moves before both sides are posted, data goes straight to its destination, and a wrong order is
// reported instead of repaired. With slots the source is free at once: the copy waits in the memory of the sender's
// device, which accounts for the slots.
#pragma once

#include "executor/host/hoststream.h"
#include "executor/mpi/rankhub.h"

namespace pipewright {

/// `from` or `to` is the hub's own process. Links of one pair differ in `channel`. `storage`: remoteLinkStorage() bytes
/// of the sender's device, passed by the sender's process; null where that is 0 bytes.
std::unique_ptr<Link> createRemoteLink(RankHub& hub, int from, int to, const LinkOptions& options,
                                       std::unique_ptr<Allocation> storage, int channel = 0);
Bytes remoteLinkStorage(const LinkOptions& options);

/// A hash that distinguishes lists of sizes.
std::int64_t shapeOf(std::span<const Region> regions);

} // namespace pipewright
