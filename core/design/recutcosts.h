// SPDX-License-Identifier: GPL-3.0-or-later
// The costs of one cut of a model into stages, carried over to another cut or placement.
#pragma once

#include "core/design/costs.h"
#include "core/model/workload.h"
#include "core/schedule/pipelineshape.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace pipewright {

/// What it is put down to that the times of stages are not in proportion to their layers' work: a layer that moves to
/// another device takes on that device's pace, or keeps its own time. One recording of one stage per device cannot tell
/// (unevenness.h).
enum class Unevenness : std::uint8_t { OfDevices, OfLayers };
constexpr std::string_view nameOf(Unevenness uneven) ///< as in options
{
    switch (uneven) {
    case Unevenness::OfDevices: return "devices";
    case Unevenness::OfLayers: return "layers";
    }
    return {};
}

/// A partition that a recut starts from or leads to. Without devices a layer keeps its time on any device.
struct StageCut {
    std::vector<int> layersPerStage, deviceOfStage{};
    MemoryChoices choices{}; ///< to which the bytes belong
};

/// The same costs for another cut: a stage's time is shared out over its layers by their FLOPs (evenly where they have
/// none) and added up again. With devices, a layer that moves to another device gets that device's pace: its FLOPs at
/// the rate of the device's own stages, or of all stages when it had none; unless `uneven` says that it keeps its time.
/// Stages that stay as they were keep their
/// times; the others' are marked as estimated. When the first stage had all of its backward in the weight gradient, as
/// with PyTorch, so has only the first stage of the new cut. Bytes are the model's; links stay unless they were given
/// per pair. Accurate as long as layers of a kind take equal times. Throws Error.
Costs recutCosts(const Workload& workload, const Costs& costs, const StageCut& from, const StageCut& to,
                 Unevenness uneven = Unevenness::OfDevices);

/// Without a model: the total cost of a device's stages is divided evenly among its new stages; a device without stages
/// before gets the average of the others. Unevenness::OfLayers: a new stage takes the times of the part of the model
/// that it holds, where every old stage is an equal part.
Costs shareOutCosts(const Costs& costs, const std::vector<int>& fromDeviceOfStage,
                    const std::vector<int>& toDeviceOfStage, Unevenness uneven = Unevenness::OfDevices);

/// By the model, the share of the input gradient in both halves of each stage's backward, 0 to 1; unset where they have
/// no work.
std::vector<std::optional<double>> inputGradShares(const Workload& workload, const std::vector<int>& layersPerStage);

} // namespace pipewright
