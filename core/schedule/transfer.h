// SPDX-License-Identifier: GPL-3.0-or-later
// Transfers follow from the data and have no place in a schedule, but the order in which a device issues them
// may be stated: as pairs, each of which says that one comes before another. Pairs stay true while blocks move
// around them, which a list of a device's transfers would not. One side of a pair may be a collective of a group's
// members: their sends leave before it or behind it.
#pragma once

#include "core/schedule/block.h"

namespace pipewright {

/// What one block hands to another device: all its values that go there travel together. Or a collective: what the
/// members of a group do together amid the block. Where a group runs as one device, or the device is none, a block has
/// no amid, and its end stands for it.
struct Transfer {
    /// In place of a destination: copies between the device and the host's memory, which nobody can reorder.
    static constexpr std::int32_t toHost = -1, fromHost = -2;

    Block producer;
    std::int32_t destination = 0;
    std::int32_t collective = -1; ///< at least 0: this one of the producer's, counted from 0; `destination` is 0 then
    bool isCollective() const { return collective >= 0; }
    bool isHostCopy() const { return destination < 0; }

    auto operator<=>(const Transfer&) const = default;
};

/// A person's word: `first` is issued before `second`. Says nothing while one of the two does not exist. Of a
/// collective and a transfer that leaves its group: two collectives come in the order of their blocks, and within a
/// block in that of the stage's plan.
struct TransferPrecedence {
    Transfer first, second;

    auto operator<=>(const TransferPrecedence&) const = default;
};

/// "F0.3 to 1": the producing block and the device it goes to. "F0.3 collective 1".
std::string textOf(const Transfer& transfer);

/// The inverse of textOf; nothing when the text is not exactly a transfer.
std::optional<Transfer> parseTransfer(std::string_view text);

} // namespace pipewright
