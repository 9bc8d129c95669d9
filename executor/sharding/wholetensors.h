// SPDX-License-Identifier: GPL-3.0-or-later
// Parameters of a whole model, or their gradients, by the names of its tensor graph, and the place of each in the flat
// layout of executor/training. So groups start from the parameters of single devices, and write theirs in the same
// form.
#pragma once

#include "executor/sharding/hosttensor.h"
#include "executor/stage/parameterlayout.h"
#include "executor/training/trainedwork.h"

#include <map>
#include <string>
#include <vector>

namespace pipewright::sharding {

/// By name: "3.query.weight".
using WholeTensors = std::map<std::string, HostTensor>;

/// `flat`: in `layout`, that of all layers in one stage. A tied head is its embedding.
WholeTensors wholeTensors(const Workload& workload, const ParameterLayout& layout, std::span<const float> flat);

/// The initial values: as on single devices a function of the seed and the parameters' names alone, or set by `start`.
WholeTensors initialParameters(const Workload& workload, std::uint64_t seed, const TrainedWork::Start& start = {});

/// The parameters of a stage, in its layout. Throws Error for a parameter that tensor graphs leave out.
std::vector<float> inLayout(const WholeTensors& tensors, const ModelShape& shape, const ParameterLayout& layout);

} // namespace pipewright::sharding
