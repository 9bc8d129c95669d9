// SPDX-License-Identifier: GPL-3.0-or-later
// Transfers follow from the data and are not part of a schedule, but the order in which a device issues them may be
// stated as pairs "first before second". Pairs stay valid when blocks move; a list of all transfers of a device would
// not. One side of a pair may be a collective of a group's members: their sends are issued before or after it.
#pragma once

#include "core/schedule/block.h"

namespace pipewright {

/// The transfer of a block's values to another device: all values for one device are sent together. Or a collective of
/// a group's members inside the block. When a group runs as one device, or the device is not a group, the end of the
/// block stands for its collectives.
struct Transfer {
    /// In place of a destination: copies between the device and the host's memory, which nobody can reorder.
    static constexpr std::int32_t toHost = -1, fromHost = -2;
    /// Likewise: exchanges of the device with copies of the pipeline that are only counted (program/copycollectives.h).
    /// `producer` is then the block that reads what is gathered, or behind which gradients are summed.
    static constexpr std::int32_t gathers = -3, sums = -4;

    Block producer;
    std::int32_t destination = 0;
    std::int32_t collective = -1; ///< at least 0: this one of the producer's, counted from 0; `destination` is 0 then
    bool isCollective() const { return collective >= 0; }
    bool isHostCopy() const { return destination == toHost || destination == fromHost; }
    bool isWithCopies() const { return destination == gathers || destination == sums; }
    /// Only those before readers have a place among the blocks; updated parameters are gathered behind the update.
    bool isGatherForReader() const { return destination == gathers && isPass(producer.op); }

    auto operator<=>(const Transfer&) const = default;
};

/// A stated order: `first` is issued before `second`. No effect while one of the two does not exist. One of them may be
/// a collective and the other a transfer that leaves its group. The order of two collectives cannot be stated: it is
/// that of their blocks, and within a block that of the stage's plan.
struct TransferPrecedence {
    Transfer first, second;

    auto operator<=>(const TransferPrecedence&) const = default;
};

/// "F0.3 to 1": the producing block and the device it goes to. "F0.3 collective 1".
std::string textOf(const Transfer& transfer);

/// The inverse of textOf; nothing when the text is not exactly a transfer.
std::optional<Transfer> parseTransfer(std::string_view text);

} // namespace pipewright
