// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/widenedlayers.h"

#include "core/workload/recomputedtensors.h"
#include "core/workload/transformer.h"

#include <algorithm>

namespace pipewright {

WidenedLayer widenedLayer(const Layer& layer)
{
    constexpr Bytes wide = bytesOf(DataType::Fp32);
    WidenedLayer copies{.parameters = layer.parameters * wide};
    for (const SavedTensor& tensor : layer.saved)
        switch (tensor.lifetime) {
        case Lifetime::UntilInputGrad: copies.untilInputGrad += tensor.elements * wide; break;
        case Lifetime::UntilWeightGrad: copies.untilWeightGrad += tensor.elements * wide; break;
        case Lifetime::FromInputGrad: copies.fromInputGrad += tensor.elements * wide; break;
        }
    for (const WorkspaceTensor& tensor : layer.workspace)
        copies.workspace += tensor.bytes();
    return copies;
}

Bytes widenedStream(const ModelShape& shape)
{
    return shape.tokens() * shape.hidden * bytesOf(DataType::Fp32);
}

PassWorkspace passWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute)
{
    if (!shape.widened) {
        const Bytes inputGrad = stageWorkspace(layersOfStage);
        return {forwardScratch(layersOfStage, recompute, shape.sequencePieces), inputGrad, 0, inputGrad,
                recomputeScratch(layersOfStage, recompute)};
    }
    PassWorkspace largest;
    for (const Layer& layer : layersOfStage) {
        const WidenedLayer of = widenedLayer(layer);
        // A piece of a sequence looks into what the pieces before it keep of attention.
        const Bytes earlier = hasAttention(layer.kind) ? (shape.sequencePieces - 1) * of.untilInputGrad : 0;
        const Bytes kept = of.untilInputGrad + of.untilWeightGrad, forward = of.parameters + kept + earlier;
        largest.forward = std::max(largest.forward, forward);
        largest.inputGrad = std::max(largest.inputGrad, forward + of.fromInputGrad + of.workspace);
        largest.weightGrad = std::max(largest.weightGrad, of.untilWeightGrad + of.fromInputGrad);
        switch (recompute) {
        case Recompute::None: break;
        case Recompute::Selective: largest.recompute = largest.forward; break;
        case Recompute::Full: largest.recompute = largest.forward; break;
        }
    }
    const Bytes stream = widenedStream(shape);
    largest.forward += stream;
    largest.inputGrad += stream;
    largest.backward = largest.inputGrad; // the weights' gradients need less than the input's
    if (recompute == Recompute::Full)
        largest.recompute += stream;
    return largest;
}

} // namespace pipewright
