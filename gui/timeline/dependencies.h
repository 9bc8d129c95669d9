// SPDX-License-Identifier: GPL-3.0-or-later
// The producers and consumers of a block: the arrows show them, and the keys [ and ] follow them. They follow from the
// chain of stages and the design's skip connections, so the cost does not grow with the schedule. Blocks that the
// caller's layout does not contain are left out.
#pragma once

#include "core/design/design.h"
#include "gui/document/timelinelayout.h"

#include <vector>

namespace pipewright {

struct Dependencies {
    std::vector<Block> inputs, outputs; ///< only blocks that the layout has
};
Dependencies dependenciesOf(const Design& design, const TimelineLayout& layout, const Block& block);

/// Of the inputs, the one that ends last (what the block waited for); of the outputs, the first to start.
std::optional<Block> lastInput(const Dependencies& dependencies, const TimelineLayout& layout);
std::optional<Block> firstOutput(const Dependencies& dependencies, const TimelineLayout& layout);

} // namespace pipewright
