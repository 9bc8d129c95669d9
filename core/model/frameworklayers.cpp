// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/frameworklayers.h"

#include "core/model/parallelism.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace pipewright {

namespace {

using Loss = FrameworkMemory::Loss;

constexpr std::string_view probabilities = "loss.probabilities", logitsGradient = "projection.outputGrad";

const SavedTensor* find(const Layer& layer, std::string_view name)
{
    const auto found = std::find_if(layer.saved.begin(), layer.saved.end(),
                                    [name](const SavedTensor& tensor) { return tensor.name == name; });
    return found == layer.saved.end() ? nullptr : &*found;
}

/// Of the matrix over the vocabulary; 0 without one.
Bytes vocabularyMatrix(const ModelShape& shape, const Layer& layer)
{
    for (const LayerParameter& parameter : layer.parameterTensors)
        if ((layer.kind == LayerKind::Embedding && parameter.name == "table.weight")
            || (layer.kind == LayerKind::Head && parameter.name == "projection.weight"))
            return parameter.count() * bytesOf(shape.dataType);
    return 0;
}

/// The values between layers for all tokens of a member's part of the sequence.
Bytes allTokens(const ModelShape& shape)
{
    return memberShape(shape).tokens() * shape.hidden * bytesOf(shape.dataType);
}

} // namespace

void asKeptByFramework(const ModelShape& shape, Layer& layer)
{
    const FrameworkMemory& framework = shape.framework;
    const auto drop = [&layer](std::string_view name) {
        std::erase_if(layer.saved, [name](const SavedTensor& tensor) { return tensor.name == name; });
    };
    if (framework.loss == Loss::InPlace && find(layer, probabilities) && find(layer, logitsGradient)) {
        SavedTensor logits = *find(layer, logitsGradient);
        logits.name = "loss.logits";
        logits.lifetime = Lifetime::UntilWeightGrad;
        drop(probabilities);
        drop(logitsGradient);
        layer.saved.push_back(std::move(logits));
    }
    if (framework.expertsWeightedEarly)
        drop("experts.output");
    if (framework.attentionInBothLayouts && shape.parallel.context > 1 && hasAttention(layer.kind)) {
        const ModelShape member = memberShape(shape);
        const std::int64_t size = shape.keyValueLatent > 0 ? shape.valueHeadSize : shape.headSize;
        layer.saved.push_back({"attention.byHeads", member.tokens() * member.heads * size, bytesOf(shape.dataType),
                               Lifetime::UntilInputGrad, true});
    }
}

EndWorkspace endWorkspace(const ModelShape& shape, const Layer& layer, Bytes keptByOthers)
{
    EndWorkspace work;
    Bytes released = layer.kind == LayerKind::Embedding ? keptByOthers : 0;
    if (const SavedTensor* kept = find(layer, probabilities)) {
        released += kept->bytes();
        if (shape.framework.loss == Loss::Plain) {
            const Bytes wide = kept->elements * bytesOf(DataType::Fp32),
                        own = shape.dataType == DataType::Fp32 ? 0 : kept->elements * bytesOf(shape.dataType);
            work.forward = wide + own;
            // The gradients of log probabilities and of fp32 logits, before that of the logits is there; in fp32 the
            // last two are one.
            work.inputGrad = shape.dataType == DataType::Fp32 ? wide : 2 * wide - own;
        }
    }
    if (const Bytes matrix = vocabularyMatrix(shape, layer); shape.framework.wholeVocabularyGradients && matrix > 0) {
        work.weightGrad = matrix;
        const Bytes inputGradient = layer.kind == LayerKind::Head ? allTokens(shape) : 0;
        work.backward = std::max<Bytes>(0, matrix + inputGradient - released);
    }
    work.backward = std::max(work.backward, work.inputGrad);
    return work;
}

Bytes heldByFramework(const ModelShape& shape, std::span<const Layer> layersOfStage)
{
    const FrameworkMemory& framework = shape.framework;
    Bytes held = framework.buffers;
    std::set<std::pair<std::int64_t, std::int64_t>> shapes; // rows and columns
    for (const Layer& layer : layersOfStage) {
        if (framework.gatheredSequence && shape.parallel.sequence && layer.kind == LayerKind::Head)
            held += allTokens(shape);
        if (!framework.gradientPlaceholders || !isBlock(layer.kind))
            continue;
        for (const LayerParameter& parameter : layer.parameterTensors)
            if (parameter.name.ends_with(".weight") && parameter.rows > 1 && parameter.name != "router.weight")
                shapes.emplace(parameter.rows / (parameter.name.starts_with("experts.") ? shape.experts : 1),
                               parameter.columns);
    }
    for (const auto& [rows, columns] : shapes)
        held += rows * columns * bytesOf(shape.dataType);
    return held;
}

Bytes narrowWeightsOf(const ModelShape& shape, std::span<const Layer> layersOfStage, bool gathered)
{
    const int copies = !shape.framework.narrowInputs ? 0
                       : !shape.narrowParameters     ? narrowCopies
                       : gathered                    ? 0
                                                     : narrowCopies - 1;
    Bytes held = 0;
    for (const Layer& layer : layersOfStage)
        if (copies > 0 && layer.narrowParameters > 0)
            held += copies * bytesIn(shape.products, layer.narrowParameters);
    return held;
}

} // namespace pipewright
