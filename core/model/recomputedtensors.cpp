// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/recomputedtensors.h"

#include "core/base/diagnostic.h"

#include <algorithm>

namespace pipewright {

namespace {

bool holdsTheHead(std::span<const Layer> layers)
{
    return std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return layer.kind == LayerKind::Head; });
}

} // namespace

bool isCheckpointed(LayerKind kind)
{
    switch (kind) {
    case LayerKind::Transformer:
    case LayerKind::Mlp:
    case LayerKind::Other: return true; // a table does not say which layers are the ends
    case LayerKind::Embedding:
    case LayerKind::Head: return false;
    }
    return false;
}

void checkRecompute(const ModelShape& shape, const std::vector<Recompute>& ofStage)
{
    if (std::none_of(ofStage.begin(), ofStage.end(), [](Recompute recompute) { return recompute.coresOnly(); }))
        return;
    std::string_view why;
    if (shape.architecture == Architecture::Classifier)
        why = "a classifier has no attention to recompute selectively";
    else if (shape.architecture == Architecture::Table)
        why = "a table of layers does not say what of a layer is attention";
    else if (shape.attention == AttentionMemory::Recomputed)
        why = "the model's attention keeps nothing of its core, so there is nothing to recompute selectively";
    if (!why.empty())
        throw Error("schedule.recompute", std::string(why), "use full or none");
}

bool isRecomputed(const SavedTensor& tensor, Recompute recompute, int sequencePieces)
{
    if (recompute.coresOnly())
        return tensor.ofAttentionCore;
    return recompute.readsInput() && tensor.lifetime != Lifetime::FromInputGrad
           && (sequencePieces == 1 || !tensor.readByLaterPieces);
}

Bytes recomputedBytes(const Layer& layer, Recompute recompute, int sequencePieces)
{
    Bytes bytes = 0;
    for (const SavedTensor& tensor : layer.saved)
        bytes += isRecomputed(tensor, recompute, sequencePieces) ? tensor.bytes() : 0;
    return bytes;
}

Bytes forwardScratch(std::span<const Layer> layersOfStage, Recompute recompute, int sequencePieces)
{
    Bytes shared = 0, ofHead = 0;
    for (const Layer& layer : layersOfStage) {
        Bytes& part = layer.kind == LayerKind::Head ? ofHead : shared;
        part = std::max(part, recomputedBytes(layer, recompute, sequencePieces));
    }
    return shared + ofHead;
}

Bytes recomputeScratch(std::span<const Layer> layersOfStage, Recompute recompute)
{
    return recompute == Recompute::Block && !holdsTheHead(layersOfStage) ? layersOfStage.back().outputBytes : 0;
}

double attentionCoreFlops(const Layer& layer)
{
    return hasAttention(layer.kind) ? layer.forwardFlops - layer.weightGradFlops : 0;
}

double recomputedFlops(const Layer& layer, Recompute recompute)
{
    switch (recompute.kind) {
    case RecomputeKind::None: return 0;
    case RecomputeKind::Selective:
    case RecomputeKind::BlockSelective: return attentionCoreFlops(layer);
    case RecomputeKind::Full: return isCheckpointed(layer.kind) ? layer.forwardFlops : 0;
    case RecomputeKind::Block: return layer.forwardFlops;
    }
    return 0;
}

} // namespace pipewright
