// SPDX-License-Identifier: GPL-3.0-or-later
// Derives the layers of a model from its graph and splits them evenly over stages. O(layers).
#include "core/model/transformer.h"

#include "core/model/frameworklayers.h"
#include "core/model/layersofgraph.h"
#include "core/model/layertable.h"
#include "core/model/modelgraph.h"
#include "core/model/parallelism.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace pipewright {

namespace {

/// The layer that a range of one stands for, without name and kind.
Layer describedLayer(const ModelShape& shape, const ModelShape& member, const LayerRange& range)
{
    Layer layer;
    describeLayer(stageGraph(member, {}, range), shape.parallel.sequence ? shape.parallel.tensor : 1, layer);
    return layer;
}

Layer named(Layer layer, std::string name, LayerKind kind)
{
    layer.name = std::move(name);
    layer.kind = kind;
    return layer;
}

} // namespace

std::vector<Layer> layersOf(const ModelShape& shape)
{
    if (shape.architecture == Architecture::Table)
        return tableLayers(shape);
    const ModelShape member = memberShape(shape);
    std::vector<Layer> layers;
    layers.reserve(shape.layers + 2);
    layers.push_back(named(describedLayer(shape, member, {0, 0, true, false}), "embedding", LayerKind::Embedding));
    const LayerKind kind = shape.architecture == Architecture::Classifier ? LayerKind::Mlp : LayerKind::Transformer;
    std::map<std::pair<bool, std::int64_t>, Layer> described; // layers are alike but for experts and windows
    for (int index = 0; index < shape.layers; ++index) {
        const std::pair key{hasExperts(shape, index), windowOf(shape, index)};
        if (!described.contains(key))
            described.emplace(key, describedLayer(shape, member, {index, 1, false, false}));
        layers.push_back(named(described.at(key), "layer " + std::to_string(index), kind));
    }
    layers.push_back(named(describedLayer(shape, member, {shape.layers, 0, false, true}), "head", LayerKind::Head));
    if (hasTiedHead(shape)) {
        layers.back().sharedParameters = member.vocabulary * shape.hidden;
        layers.back().tiedTo = "embedding";
    }
    for (Layer& layer : layers) {
        asMember(shape, layer);
        asKeptByFramework(shape, layer);
    }
    if (!hasKnownPasses(shape)) // the passes of other models are not known here
        for (Layer& layer : layers)
            layer.workspace.clear();
    return layers;
}

Bytes stageWorkspace(std::span<const Layer> layersOfStage)
{
    Bytes largest = 0;
    for (const Layer& layer : layersOfStage) {
        Bytes bytes = 0;
        for (const WorkspaceTensor& tensor : layer.workspace)
            bytes += tensor.bytes();
        largest = std::max(largest, bytes);
    }
    return largest;
}

std::vector<Layer> wholeLayersOf(const Workload& workload)
{
    ModelShape whole = workload.shape;
    whole.parallel = {};
    whole.framework = {};
    return layersOf(whole);
}

std::int64_t sequenceGradientElements(const ModelShape& shape)
{
    const ModelShape member = memberShape(shape);
    const std::int64_t keysAndValues =
        shape.keyValueLatent > 0 ? member.heads * (shape.headSize + shape.rotaryHeadSize + shape.valueHeadSize)
                                 : 2 * member.keyValueHeads * shape.headSize;
    return keysAndValues * shape.tokens() * (shape.sequencePieces - 1); // pieces exclude context parallelism
}

StateBytesPerParameter stateBytes(DataType type, Optimizer optimizer, const FrameworkMemory& framework)
{
    constexpr int wide = bytesOf(DataType::Fp32);
    const int moments = wide * factsOf(optimizer).values;
    const int gradient = framework.narrowGradients ? bytesOf(type) : wide;
    if (type == DataType::Fp32 || framework.wideParameters)
        return {wide, gradient, moments};
    return {bytesOf(type), gradient, wide + moments}; // the optimizer also holds the fp32 master copy
}

Workload makeWorkload(const ModelShape& shape, Optimizer optimizer, std::string source)
{
    if (Diagnostics wrong = checkShape(shape); hasErrors(wrong))
        throw Error(std::move(wrong));
    Workload workload;
    workload.shape = shape;
    workload.optimizer = optimizer;
    workload.state = stateBytes(shape.dataType, optimizer, shape.framework);
    workload.layers = layersOf(shape);
    workload.source = std::move(source);
    return workload;
}

std::int64_t parameterCount(const Workload& workload)
{
    std::int64_t count = 0;
    for (const Layer& layer : wholeLayersOf(workload))
        count += layer.parameters - layer.sharedParameters;
    return count;
}

std::vector<int> evenPartition(const Workload& workload, int stages)
{
    if (workload.shape.architecture == Architecture::Table)
        return balancedPartition(workload.layers, stages);
    const int all = static_cast<int>(workload.layers.size());
    const auto isRepeated = [](const Layer& layer) { return isBlock(layer.kind); };
    const auto first = std::find_if(workload.layers.begin(), workload.layers.end(), isRepeated);
    const int front = static_cast<int>(first - workload.layers.begin());
    const int layers = static_cast<int>(std::count_if(first, workload.layers.end(), isRepeated));
    if (stages < 1)
        throw Error("stages", "a model cannot be cut into " + std::to_string(stages) + " stages", "use at least 1");
    if (all < stages)
        throw Error("stages",
                    "the model has " + std::to_string(layers)
                        + (workload.shape.architecture == Architecture::Classifier ? " MLP" : " transformer")
                        + " layers and " + std::to_string(all - layers) + " at its ends, fewer than the "
                        + std::to_string(stages) + " stages",
                    "use at most " + std::to_string(all) + " stages");

    // With more stages than repeated layers the head is a stage of its own; with one more stage the embedding too,
    // which has less work.
    const bool headAlone = stages > layers, embeddingAlone = stages > layers + 1;
    const int shared = stages - (headAlone ? 1 : 0) - (embeddingAlone ? 1 : 0);
    std::vector<int> partition(shared, layers / shared);
    // The remainder goes to the stages nearest the middle, lower ones first among equals.
    std::vector<int> byDistance(shared);
    std::iota(byDistance.begin(), byDistance.end(), 0);
    std::stable_sort(byDistance.begin(), byDistance.end(), [shared](int a, int b) {
        return std::abs(2 * a - (shared - 1)) < std::abs(2 * b - (shared - 1));
    });
    for (int extra = 0; extra < layers % shared; ++extra)
        ++partition[byDistance[extra]];

    if (embeddingAlone)
        partition.insert(partition.begin(), front);
    else
        partition.front() += front;
    if (headAlone)
        partition.push_back(all - front - layers);
    else
        partition.back() += all - front - layers;
    return partition;
}

} // namespace pipewright
