// SPDX-License-Identifier: GPL-3.0-or-later
// What if there were 96 devices, another cluster, a slow node? The answer is a difference between two lists: which plan
// leads each, where it stands in the other one, and which plans enter or leave the best, and why. A plan is the same in
// both when its degrees but data, its microbatch size, schedule, shared states and recomputation are; copies and
// microbatches follow from the devices and the batch. Plans that the other list does not hold are predicted for it.
#pragma once

#include "core/plan/plan.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright {

/// One of the two lists: what was asked for, and the answer.
struct PlanList {
    const PlanRequest& request;
    const PlanResult& result;
};

/// A plan that is among the best of one list at least.
struct PlanMove {
    PlanSetting setting; ///< in the second list where it can be there, else in the first
    const Family* family = nullptr;
    int chunks = 1;
    struct Side {
        std::optional<std::size_t> place; ///< among the best
        Nanoseconds step = 0;             ///< predicted; 0: it is not of that space, or does not fit
        std::string why; ///< where its time goes, beside the first of that list; or why it is not there
    } before, after;
};

struct PlanDifference {
    Nanoseconds stepBefore = 0, stepAfter = 0;                  ///< of the first; 0: the list is empty
    double tokensPerSecondBefore = 0, tokensPerSecondAfter = 0; ///< of the first, of all devices
    /// The best of the second list in their order, then those that left, in the order of the first list.
    std::vector<PlanMove> moves;
    const PlanMove* leaderBefore() const; ///< null: the list is empty
    const PlanMove* leaderAfter() const;
};

/// Up to PlanRequest::top predictions for each list. PlanRequest::isStopped of the second ends it with fewer moves.
PlanDifference differenceOf(const PlanList& before, const PlanList& after);

/// The difference in lines: the first plan of each list, then what entered, left or moved.
std::vector<std::string> differenceText(const PlanDifference& difference);

} // namespace pipewright
