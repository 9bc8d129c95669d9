// SPDX-License-Identifier: GPL-3.0-or-later
// What follows from a layer's graph: its parameters, the tensors that its forward keeps and until when, the workspace
// of its input gradient, and its work. Every number comes from the rows of its operations (operations.h).
// O(operations).
#pragma once

#include "core/model/tensorgraph.h"
#include "core/model/workload.h"

namespace pipewright {

/// Completes a layer whose name and kind are set. A layer without a loss has an output, the last value before
/// hand_over. Tensors between matrix products are divided by `tokensOver`, the members that split the tokens.
void describeLayer(const TensorGraph& graph, std::int64_t tokensOver, Layer& layer);

} // namespace pipewright
