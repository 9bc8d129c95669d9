// SPDX-License-Identifier: GPL-3.0-or-later
// Which version of its stage's weights every block reads, and which update its gradient feeds. Both follow from the
// order of the U blocks and the schedule's weight rule. Staleness is the difference of the two, not a formula. An
// update takes the gradients of its stage's backwards since the update before it. O(blocks).
#pragma once

#include "core/schedule/ordergraph.h"
#include "core/schedule/weightrules.h"

namespace pipewright {

struct WeightRead {
    std::int32_t version = 0;    ///< updates applied to the weights that it reads
    std::int32_t steps = 0;      ///< predicted this many updates ahead; 0: not predicted
    std::int32_t update = 0;     ///< the update that its gradient feeds (U: that it makes), counted from 0
    BlockIndex madeBy = noBlock; ///< steps > 0: the block that makes the prediction, itself or an earlier one
    std::int32_t staleness() const { return update - version; }
};

struct WeightPlan {
    std::vector<WeightRead> reads; ///< per block of the graph; empty when the schedule has no U blocks
    /// Per stage, its U blocks in order, and per update the microbatches whose gradients it takes, ascending.
    std::vector<std::vector<BlockIndex>> updates;
    std::vector<std::vector<std::vector<std::int32_t>>> batches;

    bool versioned() const { return !reads.empty(); }
};

/// Adds to `diagnostics` what is wrong: a gradient that no update takes, a version that is not there yet, a rule that
/// does not fit. With `allowMissing`, as in OrderGraph, checks only the placed blocks.
WeightPlan planWeights(const Schedule& schedule, const OrderGraph& graph, bool allowMissing, Diagnostics& diagnostics);

/// Has the schedule U blocks? O(blocks).
bool hasUpdates(const Schedule& schedule);

} // namespace pipewright
