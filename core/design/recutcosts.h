// SPDX-License-Identifier: GPL-3.0-or-later
// The costs of one cut of a model into stages, carried over to another cut or placement.
#pragma once

#include "core/base/recompute.h"
#include "core/design/costs.h"
#include "core/workload/workload.h"

#include <optional>
#include <vector>

namespace pipewright {

/// Which stages a recut goes from, or to. Without devices a layer takes its time along wherever it goes.
struct StageCut {
    std::vector<int> layersPerStage, deviceOfStage{};
    std::vector<Recompute> recompute{}; ///< what its bytes are of
};

/// The same costs for another cut: a stage's time is shared out over its layers by their FLOPs (evenly where
/// they have none) and added up again. With devices, a layer that comes to another device takes what layers take
/// there: its FLOPs at the pace of the device's own stages, of all where it had none. Stages that stay as they were
/// keep their times; the others' are marked as estimated. Where the first stage left all of its backward to the weight
/// gradient, as PyTorch's does, the first stage of the new cut does so, and no other. Bytes are the model's; links stay
/// unless they were given per pair. Good while layers of a kind take alike. Throws Error.
Costs recutCosts(const Workload& workload, const Costs& costs, const StageCut& from, const StageCut& to);

/// Without a model: what the stages of a device cost together is shared out evenly over its new stages; a device that
/// had none gets what the others have on average.
Costs shareOutCosts(const Costs& costs, const std::vector<int>& fromDeviceOfStage,
                    const std::vector<int>& toDeviceOfStage);

/// The model's share of the input gradient in a full backward of each stage; unset where it has no such work.
std::vector<std::optional<double>> inputGradShares(const Workload& workload, const std::vector<int>& layersPerStage);

} // namespace pipewright
