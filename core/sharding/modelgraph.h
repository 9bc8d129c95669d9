// SPDX-License-Identifier: GPL-3.0-or-later
// Tensor graphs of the models that a workload can describe, and of plain chains of linear layers. One
// microbatch; a batch dimension first, so that data parallelism is a cut like any other. Experts are perfectly
// balanced, as in the rest of the workload: each has sequence · chosen / experts slots per sequence.
#pragma once

#include "core/sharding/tensorgraph.h"
#include "core/workload/workload.h"

#include <cstdint>
#include <vector>

namespace pipewright::sharding {

struct MlpShape {
    std::int64_t batch = 1;
    std::vector<std::int64_t> widths; ///< of the input, then of every layer's output
    std::string activation;           ///< an operation between layers, such as "gelu"; empty: none
    bool bias = false;
};

/// linear, activation, …, sum. Throws Error (where begins with "mlp.").
TensorGraph mlpGraph(const MlpShape& shape);

/// A skip connection: the output of the first `behind` transformer layers is added to the input of the layer that
/// follows the first `before` layers.
struct LayerSkip {
    int behind = 0, before = 0;
};

/// Embedding, layers with attention and MLP or experts, final norm; a decoder ends with the projection to the
/// vocabulary and cross entropy, an encoder with a sum in place of the head trained on it. A classifier begins with its
/// bag of features, has the MLPs alone, and ends with the projection to its classes. `segments`: number of segments
/// with ratios of their own. Rotary positions are part of attention, as their cost is negligible. Throws Error for
/// models without a graph: pictures, latent attention, sinks, sequences in pieces.
TensorGraph transformerGraph(const ModelShape& shape, const StateBytesPerParameter& state, int segments = 1,
                             const std::vector<LayerSkip>& skips = {});

/// A range of a model's layers: [first, first + count) of those between its ends, with or without the two ends.
struct LayerRange {
    int first = 0, count = 0;
    bool embedding = false, head = false;
    auto operator<=>(const LayerRange&) const = default;
};

/// The token table, and the head's matrix; a head that is tied to a table on another stage has a copy of it.
inline constexpr const char *embeddingName = "embedding.table", *headName = "head.weight";

/// The part of a model that one stage holds. Without the embedding it begins with a received activation; without the
/// head it ends with hand_over. Throws as transformerGraph.
TensorGraph stageGraph(const ModelShape& shape, const StateBytesPerParameter& state, const LayerRange& range);

} // namespace pipewright::sharding
