// SPDX-License-Identifier: GPL-3.0-or-later
// The sharding plans of a design's stages: requested by strategy, given in full, or carried over when a design is
// changed. A plan belongs to certain layers on a certain group; when either changes, only its strategy is kept, and
// shares and program are searched again.
#pragma once

#include "core/design/design.h"

#include <optional>
#include <stop_token>
#include <vector>

namespace pipewright {

/// The plan that the design states for the stage; an empty plan for stages without one.
sharding::StatedPlan planOfStage(const Design& design, int stage);

/// The group that holds the stage; null: a single device, or no such stage.
const DeviceSpec* groupOfStage(const Design& design, int stage);

/// The plans of `base` for the stages of `design`: the whole plan for the same layers on the same group, otherwise the
/// strategy of the stage at the same place. O(stages).
std::vector<sharding::StatedPlan> carriedPlans(const Design& base, const Design& design);

/// The design with this plan for a stage and adapted costs: formula costs are computed anew, given or measured times
/// are scaled like the formula's. A plan that states nothing is synthesised. Throws Error when the stage is not held by
/// a group or the plan does not fit it.
Design withPlan(const Design& base, int stage, sharding::StatedPlan plan);

/// The same with a full plan of this strategy for one stage, or for every stage of a group: with these shares, or with
/// the strategy's. Throws Error, also when the strategy is impossible there. After a stop the plans are the best ones
/// so far.
Design withStrategy(const Design& base, sharding::Strategy strategy, std::optional<int> stage = {},
                    const std::vector<double>& ratios = {}, std::stop_token stop = {});

} // namespace pipewright
