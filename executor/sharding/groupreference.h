// SPDX-License-Identifier: GPL-3.0-or-later
// The reference for the training of groups: a step of the whole model on one device of the host, node by node, and the
// data that both use.
#pragma once

#include "core/design/design.h"
#include "executor/sharding/wholetensors.h"
#include "executor/training/expertchoices.h"
#include "executor/training/trainingdata.h"

#include <map>
#include <string>
#include <vector>

namespace pipewright::sharding {

/// Weight of a loss that is summed over the tokens of a microbatch, in the mean of a step.
float lossWeight(const ModelShape& shape, int microbatches);

/// The reasons why the model of a design with groups cannot be trained here: operations, operands and attributes of
/// its graph without maths. Empty: it can.
Diagnostics whyGroupsDoNotTrain(const ModelShape& shape);

/// The data of one step, per microbatch.
struct StepData {
    std::vector<HostTensor> inputs, targets;
};
StepData sampleStep(const TrainingData& data, const ModelShape& shape, int step, int microbatches);

/// Which experts the tokens of a run visited, for a reference that follows them (expertchoices.h): per microbatch, by
/// the name of the node that chooses, token after token.
struct FollowedGroups {
    std::vector<std::map<std::string, std::vector<std::int32_t>>> choices;
    double tolerance = 0;
};

/// One step of the whole model on one device, node by node, microbatch after microbatch. `followed`: choices of experts
/// to follow; null: this step's own choices.
struct ReferenceStep {
    WholeTensors gradients;
    double loss = 0; ///< mean over tokens and microbatches
    RoutingCheck routing;
};
ReferenceStep referenceStep(const Design& design, const WholeTensors& parameters, const StepData& data,
                            const FollowedGroups* followed = nullptr);

} // namespace pipewright::sharding
