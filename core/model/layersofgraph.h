// SPDX-License-Identifier: GPL-3.0-or-later
// What follows from a layer's graph: its parameters, the tensors that its forward keeps and until when, the workspace
// of its input gradient, and its work. Every number comes from the rows of its operations (operations.h).
// O(operations).
#pragma once

#include "core/model/tensorgraph.h"
#include "core/model/workload.h"

#include <map>
#include <string>
#include <vector>

namespace pipewright {

/// The tensors of a layer's graph, and which of them its kept tensors (Layer::saved) hold.
struct LayerTensors {
    /// Of products that are computed as one, each has a part of their result's gradient.
    struct Gradient {
        std::string name;
        std::int64_t first = 0; ///< elements before it
    };
    std::map<int, std::string> values;  ///< by tensor
    std::map<int, Gradient> gradients;  ///< by the tensor whose operation reads it for its weight gradient
    std::vector<std::int64_t> elements; ///< per tensor: those that tokens fill, where it has slots of experts
};

/// Completes a layer whose name and kind are set. A layer without a loss has an output, the last value before
/// hand_over. Tensors between matrix products are divided by `tokensOver`, the members that split the tokens.
LayerTensors describeLayer(const TensorGraph& graph, std::int64_t tokensOver, Layer& layer);

} // namespace pipewright
