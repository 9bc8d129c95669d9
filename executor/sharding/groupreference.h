// SPDX-License-Identifier: GPL-3.0-or-later
// What the training of groups is compared with: a step of the whole model on one device of the host, node by node; and
// the data that both read.
#pragma once

#include "core/design/design.h"
#include "executor/sharding/wholetensors.h"
#include "executor/training/trainingdata.h"

#include <vector>

namespace pipewright::sharding {

/// Of a loss summed over the tokens of a microbatch, in the mean of a step.
float lossWeight(const ModelShape& shape, int microbatches);

/// What keeps the model of a design with groups from being trained on this host: operations without maths, and what
/// tensor graphs leave out (attention sinks, latent attention …). Empty: nothing.
Diagnostics whyGroupsDoNotTrain(const ModelShape& shape);

/// The data of one step, per microbatch.
struct StepData {
    std::vector<HostTensor> tokens, targets;
};
StepData sampleStep(const TrainingData& data, const ModelShape& shape, int step, int microbatches);

/// One step of the whole model on one device, node by node, microbatch after microbatch.
struct ReferenceStep {
    WholeTensors gradients;
    double loss = 0; ///< mean over tokens and microbatches
};
ReferenceStep referenceStep(const Design& design, const WholeTensors& parameters, const StepData& data);

} // namespace pipewright::sharding
