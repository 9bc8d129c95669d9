// SPDX-License-Identifier: GPL-3.0-or-later
// The order of some blocks of one device, to be given to other devices: a warm-up, for example. Each block is named by
// what it is on every device (operation, which of the device's stages, which microbatch), so the order fits the other
// device's own stages.
#pragma once

#include "core/schedule/edits.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

struct PatternBlock {
    Op op = Op::F;
    int chunk = 0;      ///< which of the stages that its device holds, by replica and stage: 0, 1, …
    int microbatch = 0; ///< of its replica's: 0, 1, …
    int between = 0;    ///< so many blocks that were not copied stand between the copied block in front and it
    bool operator==(const PatternBlock&) const = default;
};

struct Pattern {
    std::vector<PatternBlock> blocks; ///< in the order in which they run
    bool operator==(const Pattern&) const = default;
};

/// The blocks at these positions (ascending) of a device's order. O(blocks copied + stages).
Pattern patternOf(const Schedule& schedule, int device, std::span<const std::uint32_t> positions);

struct PatternOnDevice {
    std::vector<std::uint32_t> positions; ///< the new order, by present positions, as reorderDevice() takes it
    std::vector<PatternBlock> missing;    ///< blocks of the pattern that are not placed there, and are left out
    bool changesOrder() const;
};
/// The first block of the pattern that the device has keeps its place among the blocks that are not of the pattern; the
/// others follow in the pattern's order, with as many blocks between them as where they were copied. O(b log b) for b
/// blocks of the device.
PatternOnDevice patternOn(const Schedule& schedule, const Pattern& pattern, int device);

/// Gives the pattern's order to all these devices, and checks the result as a whole: what one device alone could not
/// do, they may be able to do together. Refused where a device has none of its blocks.
EditResult pastePattern(const Schedule& schedule, const Pattern& pattern, std::span<const int> devices,
                        std::span<const SkipConnection> skips = {});

} // namespace pipewright
