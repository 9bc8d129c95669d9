// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/passmemory.h"

#include "core/model/recomputedtensors.h"

#include <algorithm>

namespace pipewright {

std::vector<RecomputeSegment> segmentsOf(std::span<const Layer> layersOfStage, Recompute recompute)
{
    if (!recompute.insideBackward())
        return {{0, layersOfStage.size(), recompute}};
    const Recompute atOnce = recompute.coresOnly() ? Recompute::BlockSelective : Recompute::Block;
    std::vector<RecomputeSegment> segments;
    for (std::size_t i = 0; i < layersOfStage.size(); ++i) {
        const Recompute of = isCheckpointed(layersOfStage[i].kind) ? atOnce : Recompute::None;
        const auto isFull = [&](const RecomputeSegment& segment) {
            return of != Recompute::None
                   && segment.last - segment.first == static_cast<std::size_t>(std::max(1, recompute.layers));
        };
        if (segments.empty() || segments.back().recompute != of || isFull(segments.back()))
            segments.push_back({i, i, of});
        segments.back().last = i + 1;
    }
    return segments;
}

KeptBytes keptBytes(std::span<const Layer> layers, Recompute recompute, int sequencePieces)
{
    KeptBytes kept;
    for (const Layer& layer : layers)
        for (const SavedTensor& tensor : layer.saved) {
            const bool again = isRecomputed(tensor, recompute, sequencePieces);
            switch (tensor.lifetime) {
            case Lifetime::UntilInputGrad:
                (again ? kept.againUntilInputGrad : kept.untilInputGrad) += tensor.bytes();
                break;
            case Lifetime::UntilWeightGrad:
                (again ? kept.againUntilWeightGrad : kept.untilWeightGrad) += tensor.bytes();
                break;
            case Lifetime::FromInputGrad: kept.fromInputGrad += tensor.bytes(); break;
            }
        }
    return kept;
}

Bytes keptInput(std::span<const Layer> layersOfStage, const RecomputeSegment& segment)
{
    return segment.recompute == Recompute::Block && segment.first > 0 ? layersOfStage[segment.first - 1].outputBytes
                                                                      : 0;
}

BetweenSegments betweenSegments(std::span<const Layer> layersOfStage, std::span<const RecomputeSegment> segments)
{
    if (segments.size() < 2)
        return {};
    const Bytes stream = alignedForPass(layersOfStage.front().outputBytes);
    return {layersOfStage.back().kind == LayerKind::Head ? stream : 0,
            layersOfStage.front().kind == LayerKind::Embedding ? stream : 0};
}

PassMemory passMemory(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute)
{
    if (!recompute.insideBackward())
        return {keptBytes(layersOfStage, recompute, shape.sequencePieces), 0,
                passWorkspace(shape, layersOfStage, recompute)};
    PassMemory stage;
    const std::vector<RecomputeSegment> segments = segmentsOf(layersOfStage, recompute);
    PassWorkspace& most = stage.workspace;
    for (const RecomputeSegment& segment : segments) {
        const std::span<const Layer> layers = layersOfStage.subspan(segment.first, segment.last - segment.first);
        const KeptBytes of = keptBytes(layers, segment.recompute, shape.sequencePieces);
        stage.kept.untilInputGrad += of.untilInputGrad + keptInput(layersOfStage, segment);
        stage.kept.untilWeightGrad += of.untilWeightGrad;
        stage.kept.fromInputGrad += of.fromInputGrad + of.againUntilWeightGrad;
        const PassWorkspace work = passWorkspace(shape, layers, segment.recompute);
        const Bytes inInputGrad = alignedForPass(of.againUntilInputGrad),
                    inBackward =
                        inInputGrad + alignedForPass(of.againUntilWeightGrad) + alignedForPass(of.fromInputGrad);
        most.forward = std::max(most.forward, work.forward);
        most.inputGrad = std::max(most.inputGrad, inInputGrad + std::max(work.recompute, work.inputGrad));
        most.weightGrad = std::max(most.weightGrad, work.weightGrad);
        most.backward =
            std::max(most.backward, inBackward + std::max({work.recompute, work.inputGrad, work.weightGrad}));
    }
    const BetweenSegments between = betweenSegments(layersOfStage, segments);
    most.forward += between.forward;
    most.inputGrad += between.backward;
    most.backward += between.backward;
    stage.sparedByBackward = stage.kept.fromInputGrad;
    return stage;
}

} // namespace pipewright
