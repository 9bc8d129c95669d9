// SPDX-License-Identifier: GPL-3.0-or-later
// Edits are pure functions: each takes a schedule and returns the edited copy with its diagnostics. An edit whose
// diagnostics have an error must not be applied; they are the explanation to show at the cursor.
#pragma once

#include "core/base/diagnostic.h"
#include "core/schedule/schedule.h"
#include "core/schedule/validate.h"

#include <cstdint>
#include <functional>
#include <span>

namespace pipewright {

struct EditResult {
    Schedule schedule;
    Diagnostics diagnostics; ///< only what makes this edit illegal; missing blocks are no fault of an edit
    bool legal() const { return !hasErrors(diagnostics); }
};

/// Where a block stands: its device and its index in that device's order; device -1 when unplaced.
struct Position {
    int device = -1;
    int index = -1;
    bool operator==(const Position&) const = default;
};
Position find(const Schedule& schedule, const Block& block); ///< O(blocks of the device)

/// Moves a block within its device's order so that it stands before the block that is now at `index`
/// (index = size: to the end).
EditResult moveBlock(const Schedule& schedule, const Block& block, int index,
                     std::span<const SkipConnection> skips = {});
/// 0, 1, 2, …: the present order of a device, as reorderDevice() takes it.
std::vector<std::uint32_t> presentPositions(std::size_t size);
/// The order in which each of `moved` (ascending) has passed `places` of the other blocks, later or (negative) earlier,
/// as far as possible. O(size).
std::vector<std::uint32_t> shiftedPositions(std::size_t size, std::span<const std::uint32_t> moved, int places);
/// Gives a device's blocks another order, named by their present positions: several moved at once, or two
/// exchanged. `positions` must name each position once.
EditResult reorderDevice(const Schedule& schedule, int device, std::span<const std::uint32_t> positions,
                         std::span<const SkipConnection> skips = {});
/// Moves a replica's stage and all its blocks to another device, merged into its order by `startOf` (predicted
/// starts of the present schedule; blocks of equal start keep pass order).
EditResult moveStage(const Schedule& schedule, int stage, int device,
                     const std::function<Nanoseconds(const Block&)>& startOf,
                     std::span<const SkipConnection> skips = {}, int replica = 0);
/// Puts an unplaced block before `index` of the device that holds its stage.
EditResult placeBlock(const Schedule& schedule, const Block& block, int index,
                      std::span<const SkipConnection> skips = {});
/// Takes blocks out of the order, back to the tray.
EditResult unplaceBlocks(const Schedule& schedule, std::span<const Block> blocks);
/// The earliest index of its device at which `block` comes after all its dependencies, if all blocks were equally long,
/// and where possible after the same pass of earlier microbatches. -1 when its inputs are unplaced, with the reason in
/// `why` if given.
int firstLegalIndex(const Schedule& schedule, const Block& block, Diagnostics* why = nullptr);
/// Replaces full backwards by their two halves, the weight gradient right behind the input gradient; other given blocks
/// are ignored. Pins move to the first half. O(blocks).
EditResult splitBackwards(const Schedule& schedule, std::span<const Block> blocks,
                          std::span<const SkipConnection> skips = {});
/// The inverse: when both halves of a given block's backward are placed, a full backward replaces the input gradient.
EditResult mergeBackwards(const Schedule& schedule, std::span<const Block> blocks,
                          std::span<const SkipConnection> skips = {});
/// Pins a block's earliest start, or with 0 removes its pin.
EditResult pinBlock(const Schedule& schedule, const Block& block, Nanoseconds earliestStart);

} // namespace pipewright
