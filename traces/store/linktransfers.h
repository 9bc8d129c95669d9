// SPDX-License-Identifier: GPL-3.0-or-later
// Transfers between the ranks of an imported trace and their net duration. An NCCL kernel runs from its own rank's
// arrival until all ranks are done, so it often waits; the net time begins when the last participant arrives. It needs
// the kernels of all participants: sends and receives are paired by rank and peer, collectives by kind and group, both
// in order. Series of unequal length are left out, as in clockalignment.h.
#pragma once

#include "core/base/units.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

/// A kernel of NCCL, as the store's COMMUNICATIONS has it.
struct NcclKernel {
    int rank = 0, device = 0;
    int peer = -1; ///< of a send or receive, as a rank of the whole job
    Nanoseconds start = 0, end = 0;
    Bytes bytes = -1;              ///< -1: not said
    std::string collective, group; ///< "send", "recv", "allreduce"; what tells the group from others
};

struct LinkTransfer {
    std::uint32_t link = 0;         ///< into LinkTransfers::links
    int rank = 0, device = 0;       ///< the last to arrive at a collective, or the receiver
    Nanoseconds ready = 0, end = 0; ///< the last participant arrived; the last one finished
    Nanoseconds waited = 0;         ///< waiting of the first for the last
    Nanoseconds usual = 0;          ///< time of as many bytes on the median link of the same kind
    Bytes bytes = -1;

    Nanoseconds time() const { return end - ready; }
};

struct LinkTransfers {
    struct Link {
        int from = -1, to = -1; ///< ranks; -1 of a collective
        std::string what;       ///< "the link from rank 0 to rank 1", "allreduce over ranks 0, 1, 2"
        std::string kind; ///< "send" or the collective's name and size of group: comparable transfers have the same
    };
    std::vector<Link> links;
    std::vector<LinkTransfer> transfers; ///< by when they are ready
};

/// O(n log n).
LinkTransfers pairTransfers(std::vector<NcclKernel> communications);

} // namespace pipewright
