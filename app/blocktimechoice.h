// SPDX-License-Identifier: GPL-3.0-or-later
// The option --block-time of commands that take measured times, and what they say about it: both times of the blocks
// that have kernels, whichever is used.
#pragma once

#include "app/command.h"
#include "traces/analysis/blockkernels.h"

#include <optional>
#include <string>

namespace pipewright::app {

struct BlockTimeChoice {
    std::string text; ///< as given; empty: "events"

    void addTo(Command command); ///< the option --block-time
    BlockTime by() const;        ///< Throws Error for any other word.
};

/// "block_time" says which was used, "block_times" (null without kernels) how the two differ.
void addBlockTimes(Json& object, BlockTime by, const std::optional<KernelTotals>& totals);
Json toJson(const KernelTotals& totals);
/// A line or two; nothing where events were used and there are no kernels.
void printBlockTimes(BlockTime by, const std::optional<KernelTotals>& totals);
/// Kernels by group, what of the blocks was bound by launching, and CUPTI's own cost.
void print(const KernelTotals& totals);

} // namespace pipewright::app
