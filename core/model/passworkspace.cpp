// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/passworkspace.h"

#include "core/model/recomputedtensors.h"
#include "core/model/transformer.h"

#include <algorithm>

namespace pipewright {

namespace {

/// Bytes of the values between layers.
Bytes streamBytes(const ModelShape& shape, DataType type)
{
    return shape.tokens() * shape.hidden * bytesOf(type);
}

/// Bytes of the fp32 copies of one layer.
struct WidenedLayer {
    Bytes parameters = 0, untilInputGrad = 0, untilWeightGrad = 0, fromInputGrad = 0;
    Bytes workspace = 0; ///< of its input gradient, always fp32
};

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

PassWorkspace widenedWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute)
{
    PassWorkspace largest;
    for (const Layer& layer : layersOfStage) {
        const WidenedLayer of = widenedLayer(layer);
        // A piece of a sequence reads what earlier pieces keep of attention.
        const Bytes earlier = hasAttention(layer.kind) ? (shape.sequencePieces - 1) * of.untilInputGrad : 0;
        const Bytes kept = of.untilInputGrad + of.untilWeightGrad, forward = of.parameters + kept + earlier;
        largest.forward = std::max(largest.forward, forward);
        largest.inputGrad = std::max(largest.inputGrad, forward + of.fromInputGrad + of.workspace);
        largest.weightGrad = std::max(largest.weightGrad, of.untilWeightGrad + of.fromInputGrad);
        if (recompute != Recompute::None)
            largest.recompute = largest.forward;
    }
    const Bytes stream = streamBytes(shape, DataType::Fp32);
    largest.forward += stream;
    largest.inputGrad += stream;
    largest.backward = largest.inputGrad; // the weights' gradients need less than the input's
    if (recompute == Recompute::Block)
        largest.recompute += stream;
    return largest;
}

/// Values between layers lie in the pass's own output, where it has one.
PassWorkspace narrowWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute)
{
    const auto holds = [&](LayerKind kind) {
        return std::any_of(layersOfStage.begin(), layersOfStage.end(),
                           [kind](const Layer& layer) { return layer.kind == kind; });
    };
    PassWorkspace largest;
    for (const Layer& layer : layersOfStage) {
        Bytes passingBy = 0, ofInputGrad = 0;
        for (const SavedTensor& tensor : layer.saved)
            passingBy +=
                isRecomputed(tensor, recompute, shape.sequencePieces) ? alignedForPass(tensor.bytes()) : Bytes(0);
        for (const WorkspaceTensor& tensor : layer.workspace)
            ofInputGrad += alignedForPass(tensor.elements * bytesOf(tensor.ofSums ? DataType::Fp32 : DataType::Bf16));
        largest.forward = std::max(largest.forward, passingBy);
        largest.inputGrad = std::max(largest.inputGrad, ofInputGrad);
    }
    const Bytes stream = alignedForPass(streamBytes(shape, DataType::Bf16));
    largest.forward += holds(LayerKind::Head) ? stream : 0;
    largest.inputGrad += holds(LayerKind::Embedding) ? stream : 0;
    largest.backward = largest.inputGrad;
    largest.recompute = recompute == Recompute::Block ? stream : 0;
    return largest;
}

} // namespace

PassWorkspace passWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute)
{
    if (shape.widened)
        return widenedWorkspace(shape, layersOfStage, recompute);
    if (shape.dataType == DataType::Bf16 && hasKnownPasses(shape))
        return narrowWorkspace(shape, layersOfStage, recompute);
    const Bytes inputGrad = stageWorkspace(layersOfStage);
    return {forwardScratch(layersOfStage, recompute, shape.sequencePieces), inputGrad, 0, inputGrad,
            recomputeScratch(layersOfStage, recompute)};
}

} // namespace pipewright
