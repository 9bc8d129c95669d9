// SPDX-License-Identifier: GPL-3.0-or-later
// What people edit: which device holds which stage and, per device, an ordered list of blocks.
// Order is the schedule; times are always derived from it. A Schedule is a plain value: copy it,
// change it, compare it. Nothing in it is checked until validate() looks (validate.h).
#pragma once

#include "core/base/units.h"
#include "core/schedule/block.h"

#include <string>
#include <vector>

namespace pipewright {

/// Whether a stage's backward is one block (B) or two (I then W). Blocks that are already placed say
/// it for themselves; this is the style that missing blocks of the same stage and microbatch take.
enum class BackwardStyle { Full, Split };

/// A block must not start before this time. Pins are the only times a person may state.
struct Pin {
    Block block;
    Nanoseconds earliestStart = 0;
    bool operator==(const Pin&) const = default;
};

/// Limits beyond which a schedule is taken for a typing error rather than work.
inline constexpr int maxMicrobatches = 65'536;
inline constexpr int maxDevices = 4'096;
inline constexpr std::int64_t maxBlocks = 8'388'608;

struct Schedule {
    std::string family;             ///< the family it was made by; "custom" after an edit
    int microbatches = 0;           ///< per step
    std::vector<int> deviceOfStage; ///< placement: stage -> device; its size is the number of stages
    BackwardStyle backward = BackwardStyle::Full;
    /// JaxPP merges I and W of stage 0 and rejects a list that separates them, since nothing waits for
    /// the input gradient of the first stage. Families that place them apart on purpose say so here.
    bool firstStageMaySplit = false;
    std::vector<std::vector<Block>> order; ///< device -> blocks in the order they run
    std::vector<Pin> pins;

    int stages() const { return static_cast<int>(deviceOfStage.size()); }
    int devices() const { return static_cast<int>(order.size()); }
    std::int64_t blocks() const;
    /// Most stages that any device holds (v in the papers).
    int chunks() const;
    bool operator==(const Schedule&) const = default;
};

/// The blocks that a complete schedule has and this one does not place: what the tray shows.
/// Sorted by operation in pass order, then microbatch, then stage. O(blocks).
std::vector<Block> unplacedBlocks(const Schedule& schedule);

} // namespace pipewright
