// SPDX-License-Identifier: GPL-3.0-or-later
// A plan of the list goes on past the space, which has even cuts and one kind of recomputation for all stages: layers
// per stage and the order of blocks by core/search, recomputation stage by stage, offload in place of recomputation.
// Each change counts only when `predict` finds the step shorter and the memory enough, so the result is never worse. It
// is refined and not proved: neither complete nor the best of what could be drawn.
#pragma once

#include "core/plan/plan.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct RefineOptions {
    std::chrono::milliseconds timeLimit{30'000};
    int threads = 1;
    std::uint64_t seed = 1;
    std::function<bool()> isStopped; ///< ends it with the best so far; unset: never
};

struct RefinedPlan {
    Design design;
    Nanoseconds before = 0, step = 0;
    Bytes peak = 0;                    ///< of the fullest device
    std::vector<std::string> changes;  ///< that made it shorter, in words; empty: nothing did
    std::vector<std::string> notTried; ///< and why
    bool stopped = false;
};

/// Throws Error when the plan's design cannot be predicted.
RefinedPlan refined(const PlanRequest& request, const TrainingPlan& plan, const RefineOptions& options);

/// "refined, not proved: 1.86 s -> 1.81 s, -2.7 %: layers per stage 5, 4, …; another order of blocks".
std::string refinedText(const RefinedPlan& plan);

} // namespace pipewright
