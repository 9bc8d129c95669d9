// SPDX-License-Identifier: GPL-3.0-or-later
// What the ranks of another tool's trace moved between them, and how long the moving itself took. A kernel of NCCL runs
// from when its own rank has come until all is done, so its length is mostly waiting for the others; what the link
// takes begins when the last of those concerned has come. It is known where the kernels of all of them were recorded:
// sends and receives are paired by rank and peer, collectives by kind and group, both in order. Series of unequal
// length (a recording that begins in their middle) are no basis and are left out, as in clockalignment.h.
#pragma once

#include "core/base/units.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

/// A kernel of NCCL, as the store's COMMUNICATIONS has it.
struct Communication {
    int rank = 0, device = 0;
    int peer = -1; ///< of a send or receive, as a rank of the whole job
    Nanoseconds start = 0, end = 0;
    Bytes bytes = -1;              ///< -1: not said
    std::string collective, group; ///< "send", "recv", "allreduce"; what tells the group from others
};

struct LinkTransfer {
    std::uint32_t link = 0;         ///< into LinkTransfers::links
    int rank = 0, device = 0;       ///< who came last of a collective, or who receives: where it can hold something up
    Nanoseconds ready = 0, end = 0; ///< all have come; the last is done
    Nanoseconds waited = 0;         ///< by the first for the last
    Nanoseconds usual = 0;          ///< what as many bytes take on the median link of the same kind
    Bytes bytes = -1;

    Nanoseconds time() const { return end - ready; }
};

struct LinkTransfers {
    struct Link {
        int from = -1, to = -1; ///< ranks; -1 of a collective
        std::string what;       ///< "the link from rank 0 to rank 1", "allreduce over ranks 0, 1, 2"
        std::string kind; ///< "send" or the collective's name and size of group: what is compared with one another
    };
    std::vector<Link> links;
    std::vector<LinkTransfer> transfers; ///< by when they are ready
};

/// O(n log n).
LinkTransfers pairTransfers(std::vector<Communication> communications);

} // namespace pipewright
