// SPDX-License-Identifier: GPL-3.0-or-later
// One plan of the list, with all that is said of it.
#pragma once

#include "core/plan/plan.h"
#include "core/plan/planwords.h"

#include <optional>
#include <vector>

namespace pipewright {

/// Predicts the plan as `predict` does it. `first`: of the list's first plan, which it is compared with; set when this
/// is the first one. Throws Error when the plan cannot be.
TrainingPlan trainingPlanOf(const PlanRequest& request, const PlanSetting& setting, const Family& family, int chunks,
                            std::optional<StepShares>& first);

/// Fills in TrainingPlan::alike.
void findAlike(std::vector<TrainingPlan>& plans);

} // namespace pipewright
