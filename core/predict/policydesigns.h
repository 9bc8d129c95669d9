// SPDX-License-Identifier: GPL-3.0-or-later
// The weight policies as comparable designs: the same model and partition, and updates over the same rows of data. A
// policy with an update per microbatch takes these rows as one microbatch, the others as one microbatch per stage. Also
// the staleness and memory of a policy per stage, and the largest stable learning rate, for teaching.
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
    bool flushes = false; ///< no staleness: the pipeline drains before every update
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

/// The momentum above which prediction by `staleness` updates allows a larger learning rate than no prediction, to
/// 1e-3; below it, a smaller one. 1 when it never does; 0 for staleness 0, which needs no prediction.
double momentumWherePredictionHelps(int staleness);

} // namespace pipewright
