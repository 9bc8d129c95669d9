// SPDX-License-Identifier: GPL-3.0-or-later
// Workspace of the runnable GPT layers, tensor by tensor: memory that a pass needs only while it runs. The executor
// allocates exactly these by name, so predicted and measured peaks agree to the byte.
//
// The layers of a stage run one after another and share the space, so a stage needs the largest of its layers. Values
// pass from layer to layer in place: in F in the stage's output (or, where the head is, in the final norm's saved
// input), in I in the gradient of the stage's input (or the embedding's saved output gradient). A full backward needs
// the input gradient's space, as the weight gradient has none.
#pragma once

#include "core/workload/workload.h"

#include <span>
#include <string_view>

namespace pipewright {

enum class Pass { Forward, InputGrad, WeightGrad, Backward };

struct WorkspaceTensor {
    std::string_view name;     ///< "d.scores"
    std::int64_t elements = 0; ///< fp32
    bool operator==(const WorkspaceTensor&) const = default;
};

/// With sbh = sequence * microbatch * hidden (a classifier: microbatch * hidden):
///   Transformer, input gradient  d.ln: sbh; d.scores: heads * sequence^2 * microbatch,
///                                streamed heads * sequence * microbatch
///   Head, Mlp, input gradient    d.ln: sbh
/// and nothing else; the backward pass as the input gradient. Of a piece of a sequence its share of each.
std::vector<WorkspaceTensor> layerWorkspace(const ModelShape& shape, LayerKind kind, Pass pass);

Bytes layerWorkspaceBytes(const ModelShape& shape, LayerKind kind, Pass pass);

/// Largest workspace of the stage's layers; 0 for shapes that cannot run.
Bytes stageWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Pass pass);

} // namespace pipewright
