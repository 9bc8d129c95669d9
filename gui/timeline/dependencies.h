// SPDX-License-Identifier: GPL-3.0-or-later
// The blocks that a block takes data from and gives data to: what the arrows show and what [ and ] follow.
// Named from the chain of stages and the design's skip connections, so asking costs nothing that grows
// with the schedule; whether a named block is placed is for the caller's layout to say.
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
