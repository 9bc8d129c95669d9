// SPDX-License-Identifier: GPL-3.0-or-later
// Transfers follow from the data and have no place in a schedule, but the order in which a device issues them
// may be stated: as pairs, each of which says that one comes before another. Pairs stay true while blocks move
// around them, which a list of a device's transfers would not.
#pragma once

#include "core/schedule/block.h"

namespace pipewright {

/// What one block hands to another device: all its values that go there travel together.
struct Transfer {
    /// In place of a destination: copies between the device and the host's memory, which nobody can reorder.
    static constexpr std::int32_t toHost = -1, fromHost = -2;

    Block producer;
    std::int32_t destination = 0;
    bool isHostCopy() const { return destination < 0; }

    auto operator<=>(const Transfer&) const = default;
};

/// A person's word: `first` is issued before `second`. Says nothing while one of the two does not exist.
struct TransferPrecedence {
    Transfer first, second;

    auto operator<=>(const TransferPrecedence&) const = default;
};

/// "F0.3 to 1": the producing block and the device it goes to.
std::string textOf(const Transfer& transfer);

/// The inverse of textOf; nothing when the text is not exactly a transfer.
std::optional<Transfer> parseTransfer(std::string_view text);

} // namespace pipewright
