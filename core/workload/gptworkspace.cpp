// SPDX-License-Identifier: GPL-3.0-or-later
// The table of layerWorkspace() and its maximum over a stage's layers. O(layers).
#include "core/workload/gptworkspace.h"

#include "core/workload/transformer.h"

#include <algorithm>

namespace pipewright {

namespace {

Bytes bytesOfAll(const std::vector<WorkspaceTensor>& tensors)
{
    Bytes bytes = 0;
    for (const WorkspaceTensor& tensor : tensors)
        bytes += tensor.elements * bytesOf(DataType::Fp32);
    return bytes;
}

bool formsInputGradient(Pass pass)
{
    return pass == Pass::InputGrad || pass == Pass::Backward;
}

} // namespace

std::vector<WorkspaceTensor> layerWorkspace(const ModelShape& shape, LayerKind kind, Pass pass)
{
    const std::int64_t hidden = shape.tokens() * shape.hidden;
    const std::int64_t perQuery = shape.attention == AttentionMemory::Streamed ? 1 : shape.sequence;
    if (!formsInputGradient(pass))
        return {};
    switch (kind) {
    case LayerKind::Transformer: return {{"d.ln", hidden}, {"d.scores", shape.heads * perQuery * shape.tokens()}};
    case LayerKind::Mlp:
    case LayerKind::Head: return {{"d.ln", hidden}};
    case LayerKind::Embedding:
    case LayerKind::Other: break;
    }
    return {};
}

Bytes layerWorkspaceBytes(const ModelShape& shape, LayerKind kind, Pass pass)
{
    return bytesOfAll(layerWorkspace(shape, kind, pass));
}

Bytes stageWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Pass pass)
{
    Bytes largest = 0;
    if (!isRunnable(shape))
        return largest;
    for (const Layer& layer : layersOfStage)
        largest = std::max(largest, layerWorkspaceBytes(shape, layer.kind, pass));
    return largest;
}

} // namespace pipewright
