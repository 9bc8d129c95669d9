// SPDX-License-Identifier: GPL-3.0-or-later
// From a model's dimensions to its graph: what every layer computes, in order, with the name that each part has. The
// only description of a layer: parameters, kept bytes, workspace and work are derived from it (layersofgraph.h), and
// groups share its operations out (core/sharding). One microbatch; a batch dimension first, so that data parallelism is
// a cut like any other. Experts are perfectly balanced: each has sequence · chosen / experts slots per sequence.
#pragma once

#include "core/model/tensorgraph.h"
#include "core/model/workload.h"

#include <cstdint>
#include <vector>

namespace pipewright {

/// A skip connection: the output of the first `behind` transformer layers is added to the input of the layer that
/// follows the first `before` layers.
struct LayerSkip {
    int behind = 0, before = 0;
};

/// The whole model, up to its loss. `segments`: number of segments with ratios of their own. Rotary positions are part
/// of attention, as their cost is negligible. Throws Error for a table of
/// layers, and for sequences in pieces.
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
/// What a model reads: tokens, a classifier's features, or patches of pictures; and the classes that its loss compares.
inline constexpr const char *inputName = "tokens", *targetName = "targets";

/// The part of a model that one stage holds. Without the embedding it begins with a received activation; without the
/// head it ends with hand_over. Throws as transformerGraph.
TensorGraph stageGraph(const ModelShape& shape, const StateBytesPerParameter& state, const LayerRange& range,
                       const std::vector<LayerSkip>& skips = {});

/// The attention of a model's first layer by itself, with the norm before it.
TensorGraph attentionGraph(const ModelShape& shape);

} // namespace pipewright
