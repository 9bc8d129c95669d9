// SPDX-License-Identifier: GPL-3.0-or-later
// Scratch memory of the runnable GPT layers, tensor by tensor: what a pass needs only while it runs. The
// executor allocates exactly these by name, so predicted and measured peaks can agree to the byte.
//
// The layers of a stage run one after another and share the space, so a stage needs the largest of its
// layers plus the buffers that hand values from layer to layer inside the stage. A full backward runs
// input and weight gradient of a layer together; its space is the input gradient's, as the weight
// gradient needs none of its own.
#pragma once

#include "core/workload/workload.h"

#include <span>
#include <string_view>

namespace pipewright {

enum class Pass { Forward, InputGrad, WeightGrad, Backward };

struct WorkspaceTensor {
    std::string_view name; ///< "d.scores"
    std::int64_t elements = 0; ///< fp32
    bool operator==(const WorkspaceTensor&) const = default;
};

/// With sbh = sequence * microbatch * hidden:
///   Transformer, forward         residual, scratch: sbh each
///   Transformer, input gradient  d.hidden, d.context, d.ln: sbh each; d.scores: sequence^2 (one head at a time)
///   Head, input gradient         d.ln: sbh
/// and nothing else.
std::vector<WorkspaceTensor> layerWorkspace(const ModelShape& shape, LayerKind kind, Pass pass);

/// Forward: stage.activation.0 and .1; input gradient and backward: stage.gradient.0 and .1; sbh each.
std::vector<WorkspaceTensor> handOverBuffers(const ModelShape& shape, Pass pass);

Bytes layerWorkspaceBytes(const ModelShape& shape, LayerKind kind, Pass pass);

/// Largest workspace of the stage's layers plus its hand-over buffers; 0 for shapes that cannot run.
Bytes stageWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Pass pass);

} // namespace pipewright
