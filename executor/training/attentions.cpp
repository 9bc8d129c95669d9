// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/attentions.h"

#include "core/model/transformer.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

kernels::GroupedAttentionShape attentionOf(const ModelShape& shape, int number)
{
    kernels::GroupedAttentionShape of{.sequences = int(shape.microbatchSize),
                                      .length = int(shape.sequence / shape.sequencePieces),
                                      .heads = shape.heads,
                                      .keyValueHeads = shape.keyValueHeads,
                                      .querySize = int(shape.headSize),
                                      .valueSize = int(shape.headSize),
                                      .pieces = shape.sequencePieces,
                                      .window = int(windowOf(shape, number)),
                                      .causal = shape.looksBack(),
                                      .softCap = float(shape.attentionSoftCap)};
    const double factor = shape.rotary.attentionFactor;
    switch (attentionCoreOf(shape)) {
    case AttentionCore::Plain: of.scale = float(1 / std::sqrt(double(of.querySize))); break;
    case AttentionCore::Grouped:
        of.scale = 1 / std::sqrt(shape.queryScale > 0 ? float(shape.queryScale) : float(of.querySize));
        if (!shape.learnedPositions)
            of.scale *= float(factor * factor);
        break;
    case AttentionCore::Latent:
        of.keyValueHeads = shape.heads;
        of.querySize = int(shape.headSize + shape.rotaryHeadSize);
        of.valueSize = int(shape.valueHeadSize);
        of.scale = float(factor * factor / std::sqrt(double(of.querySize)));
        break;
    }
    return of;
}

std::vector<kernels::GroupedAttentionShape> attentionsOf(const ModelShape& shape)
{
    std::vector<kernels::GroupedAttentionShape> all;
    if (shape.architecture == Architecture::Classifier)
        return all;
    for (int number = 0; number < shape.layers; ++number) {
        const kernels::GroupedAttentionShape of = attentionOf(shape, number);
        if (std::none_of(all.begin(), all.end(), [&of](const auto& other) { return other.window == of.window; }))
            all.push_back(of); // layers differ only in their windows
    }
    return all;
}

} // namespace pipewright
