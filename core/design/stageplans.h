// SPDX-License-Identifier: GPL-3.0-or-later
// The sharding plans of a design's stages: requested by strategy, given in full, or carried over when a design is
// changed. A plan belongs to certain layers on a certain group; where either changes, only its strategy is kept, and
// shares and program are found anew.
#pragma once

#include "core/design/design.h"

#include <optional>
#include <stop_token>
#include <vector>

namespace pipewright {

/// What the design states of it; nothing for stages without a plan.
sharding::StatedPlan planOfStage(const Design& design, int stage);

/// The group that holds the stage; null: a single device, or no such stage.
const DeviceSpec* groupOfStage(const Design& design, int stage);

/// Those of `base` for the stages of `design`: the whole plan for the same layers on the same group, otherwise the
/// strategy of the stage that was at its place. O(stages).
std::vector<sharding::StatedPlan> carriedPlans(const Design& base, const Design& design);

/// The design with this plan of a stage, and the costs that follow: a formula's, or times that were given or measured
/// in proportion to the formula's. A plan that states nothing is synthesised. Throws Error, where nothing is a group's
/// and where the plan is not of that stage.
Design withPlan(const Design& base, int stage, sharding::StatedPlan plan);

/// The same with a plan of this kind for every stage of a group, or for one, written out in full: with these shares, or
/// with those that belong to the strategy. Throws Error, also when it cannot be done there. After a stop the plans are
/// the best ones so far.
Design withStrategy(const Design& base, sharding::Strategy strategy, std::optional<int> stage = {},
                    const std::vector<double>& ratios = {}, std::stop_token stop = {});

} // namespace pipewright
