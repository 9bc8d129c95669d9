// SPDX-License-Identifier: GPL-3.0-or-later
// The option --block-time of commands that use measured times, and the output about it: both times of the blocks that
// have kernels, whichever is used.
#pragma once

#include "app/command.h"
#include "traces/analysis/blockkernels.h"

#include <optional>
#include <string>

namespace pipewright::app {

struct BlockTimeChoice {
    std::string text; ///< as given; empty: "events"

    void addTo(CLI::App& command); ///< the option --block-time
    BlockTime by() const;          ///< Throws Error for any other word.
};

/// Adds "block_time", the one that was used, and "block_times", how the two differ (null without kernels).
void addBlockTimes(Json& object, BlockTime by, const std::optional<KernelTotals>& totals);
Json toJson(const KernelTotals& totals);
/// Prints a line or two; nothing when events were used and there are no kernels.
void printBlockTimes(BlockTime by, const std::optional<KernelTotals>& totals);
/// Prints kernels by group, the time of blocks that was limited by launching, and CUPTI's own cost.
void print(const KernelTotals& totals);

} // namespace pipewright::app
