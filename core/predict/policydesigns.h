// SPDX-License-Identifier: GPL-3.0-or-later
// The weight policies as designs that can be compared: one model, one cut, and updates of the same rows of data, which
// a policy that updates after every microbatch takes as one and the others in as many microbatches as there are
// stages. Also what a policy costs at these stages, and what learning rate bears it, for people to learn from.
#pragma once

#include "core/design/designbuilder.h"
#include "core/program/weightreport.h"

#include <span>
#include <string_view>
#include <vector>

namespace pipewright {

struct ComparablePolicy {
    std::string_view family;
    std::string_view title;
    bool single = false;  ///< an update per microbatch
    bool flushes = false; ///< nothing is stale: the pipeline runs empty before every update
};

std::span<const ComparablePolicy> comparablePolicies();

struct PolicyComparison {
    std::string model = "byte-gpt-small"; ///< a preset that can be trained, without a tied head
    int stages = 4;
    int rows = 8; ///< of data per update; a multiple of the stages
    Optimizer optimizer = Optimizer::SgdMomentum;
};

/// Throws Error with the reason, such as a rule that has no prediction for the optimizer.
Design policyDesign(const ComparablePolicy& policy, const PolicyComparison& comparison);

/// A stage of a policy, and the largest learning rate at which a weight with this staleness still settles on w^2 / 2
/// (core/predict/stability.h), as it is and if nothing were predicted.
struct StageLesson {
    StageWeights weights;
    double stableRate = 0, stableRateUnpredicted = 0;
};

/// Empty for a design without U blocks. `momentum` in [0, 1).
std::vector<StageLesson> lessonOf(const Design& design, double momentum);

/// The momentum from which on prediction by `staleness` updates allows a larger learning rate than none, to 1e-3; below
/// it prediction allows a smaller one. 1 when it never does; 0 for staleness 0, where there is nothing to predict.
double momentumWherePredictionHelps(int staleness);

} // namespace pipewright
