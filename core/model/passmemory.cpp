// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/passmemory.h"

#include "core/model/frameworklayers.h"
#include "core/model/recomputedtensors.h"

#include <algorithm>

namespace pipewright {

std::vector<RecomputeSegment> segmentsOf(std::span<const Layer> layersOfStage, Recompute recompute)
{
    std::vector<RecomputeSegment> segments;
    if (!recompute.insideBackward()) {
        for (std::size_t i = 0; i < layersOfStage.size(); ++i)
            segments.push_back({i, i + 1, recompute});
        return segments;
    }
    const Recompute atOnce = recompute.coresOnly() ? Recompute::BlockSelective : Recompute::Block;
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

namespace {

/// The ends of the model need more where a framework does.
void addEnds(const ModelShape& shape, std::span<const Layer> layersOfStage, const BetweenSegments& between,
             PassMemory& stage)
{
    const auto until = [](const KeptBytes& kept) { return kept.untilInputGrad + kept.untilWeightGrad; };
    for (std::size_t i = 0; i < layersOfStage.size(); ++i) {
        const std::span<const Layer> layer = layersOfStage.subspan(i, 1);
        const KeptBytes own = keptBytes(layer, Recompute::None, shape.sequencePieces);
        const EndWorkspace end = endWorkspace(shape, layer.front(), until(stage.kept) - until(own));
        if (end == EndWorkspace{})
            continue;
        const PassWorkspace work = passWorkspace(shape, layer, Recompute::None);
        PassWorkspace& most = stage.workspace;
        most.forward = std::max(most.forward, work.forward + end.forward);
        most.inputGrad = std::max(most.inputGrad, between.backward + work.inputGrad + end.inputGrad);
        most.weightGrad = std::max(most.weightGrad, work.weightGrad + end.weightGrad);
        most.backward = std::max(most.backward, between.backward + alignedForPass(own.fromInputGrad)
                                                    + std::max(work.inputGrad, work.weightGrad) + end.backward);
    }
}

} // namespace

PassMemory passMemory(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute)
{
    const bool inside = recompute.insideBackward();
    PassMemory stage;
    if (!inside)
        stage = {keptBytes(layersOfStage, recompute, shape.sequencePieces),
                 passWorkspace(shape, layersOfStage, recompute)};
    const std::vector<RecomputeSegment> segments = segmentsOf(layersOfStage, recompute);
    const BetweenSegments between = betweenSegments(layersOfStage, segments);
    PassWorkspace most;
    for (const RecomputeSegment& segment : segments) {
        const std::span<const Layer> layers = layersOfStage.subspan(segment.first, segment.last - segment.first);
        const KeptBytes of = keptBytes(layers, segment.recompute, shape.sequencePieces);
        const PassWorkspace work = passWorkspace(shape, layers, segment.recompute);
        const Bytes recomputing = inside ? work.recompute : 0,
                    again = inside ? alignedForPass(of.againUntilInputGrad) : 0,
                    againForWeights = inside ? alignedForPass(of.againUntilWeightGrad) : 0;
        most.forward = std::max(most.forward, work.forward + between.forward);
        most.inputGrad = std::max(most.inputGrad, between.backward + again + std::max(recomputing, work.inputGrad));
        most.weightGrad = std::max(most.weightGrad, work.weightGrad);
        most.backward =
            std::max(most.backward, between.backward + again + againForWeights + alignedForPass(of.fromInputGrad)
                                        + std::max({recomputing, work.inputGrad, work.weightGrad}));
        if (inside) {
            stage.kept.untilInputGrad += of.untilInputGrad + keptInput(layersOfStage, segment);
            stage.kept.untilWeightGrad += of.untilWeightGrad;
            stage.kept.fromInputGrad += of.fromInputGrad + of.againUntilWeightGrad;
        }
    }
    if (inside)
        stage.workspace = most;
    else
        stage.workspace.backward = most.backward;
    addEnds(shape, layersOfStage, between, stage);
    return stage;
}

} // namespace pipewright
