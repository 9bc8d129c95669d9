// SPDX-License-Identifier: GPL-3.0-or-later
// FLOPs, parameters and kept tensors of each part of a layer: two FLOPs per multiply-add; kept tensors as in arXiv
// 2205.05198, section 4. O(1) per part.
#include "core/workload/layerparts.h"

#include "core/workload/transformer.h"

#include <algorithm>

namespace pipewright {

namespace {

// Adds tensors of the model's own precision; masks and indices state their width.
struct Keeper {
    Layer& layer;
    int width;
    void untilInputGrad(const char* name, std::int64_t elements)
    {
        add(name, elements, width, Lifetime::UntilInputGrad);
    }
    void untilWeightGrad(const char* name, std::int64_t elements)
    {
        add(name, elements, width, Lifetime::UntilWeightGrad);
    }
    void fromInputGrad(const char* name, std::int64_t elements) { add(name, elements, width, Lifetime::FromInputGrad); }
    void add(const char* name, std::int64_t elements, int bytesPerElement, Lifetime lifetime)
    {
        layer.saved.push_back({name, elements, bytesPerElement, lifetime});
    }
};

Keeper keeper(const ModelShape& shape, Layer& layer)
{
    return {layer, bytesOf(shape.dataType)};
}

using Start = LayerParameter::Start;

void addParameter(Layer& layer, std::string name, std::int64_t rows, std::int64_t columns, Start start)
{
    layer.parameters += rows * columns;
    layer.parameterTensors.push_back({std::move(name), rows, columns, start});
}

// A norm's weight and, where the model has biases (layer norm), its shift.
void addNorm(const ModelShape& shape, Layer& layer, const std::string& name, std::int64_t width)
{
    addParameter(layer, name + ".gamma", 1, width, Start::One);
    if (shape.bias)
        addParameter(layer, name + ".beta", 1, width, Start::Zero);
}

// A matrix product of `rows` x `inner` with `inner` x `columns` and its two gradients.
void addWork(Layer& layer, std::int64_t rows, std::int64_t inner, std::int64_t columns)
{
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns);
    layer.forwardFlops += flops;
    layer.inputGradFlops += flops;
    layer.weightGradFlops += flops;
    const double perWidth = flops / static_cast<double>(std::max<std::int64_t>(1, std::min(inner, columns)));
    layer.forwardFlopsPerWidth += perWidth;
    layer.inputGradFlopsPerWidth += perWidth;
    layer.weightGradFlopsPerWidth += perWidth;
}

struct Linear {
    const char* name;
    std::int64_t inputs, outputs;
    bool bias = false;
    Start start = Start::Normal;
};
void addLinear(Layer& layer, std::int64_t rows, const Linear& linear)
{
    addWork(layer, rows, linear.inputs, linear.outputs);
    addParameter(layer, std::string(linear.name) + ".weight", linear.outputs, linear.inputs, linear.start);
    if (linear.bias)
        addParameter(layer, std::string(linear.name) + ".bias", 1, linear.outputs, Start::Zero);
}

// Parts of a layer run one after the other, so those that name the same tensor share it.
void addWorkspace(Layer& layer, std::string_view name, std::int64_t elements, bool ofSums = false)
{
    const auto same = std::find_if(layer.workspace.begin(), layer.workspace.end(),
                                   [&](const WorkspaceTensor& tensor) { return tensor.name == name; });
    if (same == layer.workspace.end())
        layer.workspace.push_back({std::string(name), elements, ofSums});
    else
        same->elements = std::max(same->elements, elements);
}

// Scores and context: forward has two products per head, of s x queryWidth x s and s x s x valueWidth; their input
// gradients are twice that, and no weights take part.
void addAttentionCore(const ModelShape& shape, Layer& layer, std::int64_t queryWidth, std::int64_t valueWidth)
{
    const double forward = 2.0 * static_cast<double>(shape.tokens()) * static_cast<double>(shape.sequence) * shape.heads
                           * static_cast<double>(queryWidth + valueWidth);
    layer.forwardFlops += forward;
    layer.inputGradFlops += 2 * forward;
}

void keepAttentionCore(const ModelShape& shape, Layer& layer)
{
    // As many numbers as are kept, but for a model that keeps none, whose scores are not stored either.
    const std::int64_t perQuery = shape.attention == AttentionMemory::Stored ? shape.sequence : 1;
    addWorkspace(layer, "d.scores", shape.heads * perQuery * shape.tokens(), true);
    if (shape.attention == AttentionMemory::Recomputed)
        return;
    Keeper keep = keeper(shape, layer);
    if (shape.attention == AttentionMemory::Streamed) {
        keep.add("attention.probabilities", shape.heads * shape.tokens(), 4, Lifetime::UntilInputGrad); // fp32 always
        return;
    }
    const std::int64_t scores = shape.heads * shape.sequence * shape.tokens(); // heads * s^2 * b
    keep.untilInputGrad("attention.probabilities", scores);
    if (shape.dropout) {
        keep.add("attention.mask", scores, 1, Lifetime::UntilInputGrad);
        keep.untilInputGrad("attention.droppedProbabilities", scores);
    }
}

void addGroupedProjections(const ModelShape& shape, Layer& layer)
{
    const std::int64_t tokens = shape.tokens();
    const std::int64_t queries = shape.heads * shape.headSize;
    const std::int64_t keys = shape.keyValueHeads * shape.headSize;
    Keeper keep = keeper(shape, layer);
    addLinear(layer, tokens, {"qkv", shape.hidden, queries + 2 * keys, shape.queryKeyValueBias});
    keep.untilWeightGrad("qkv.input", tokens * shape.hidden);
    keep.fromInputGrad("qkv.outputGrad", tokens * (queries + 2 * keys));
    if (shape.queryKeyNorm) {
        addNorm(shape, layer, "queryNorm", shape.headSize);
        addNorm(shape, layer, "keyNorm", shape.headSize);
        keep.untilInputGrad("queryNorm.input", tokens * queries);
        keep.untilInputGrad("keyNorm.input", tokens * keys);
    }
    keep.untilInputGrad("attention.query", tokens * queries);
    keep.untilInputGrad("attention.key", tokens * keys);
    keep.untilInputGrad("attention.value", tokens * keys);
    keepAttentionCore(shape, layer);
    addAttentionCore(shape, layer, shape.headSize, shape.headSize);
}

// DeepSeek-V2's latent attention: queries and key-values pass through narrow latents with a norm each; every head's key
// is extended by one shared rotary part. The expanded form used in training.
void addLatentProjections(const ModelShape& shape, Layer& layer)
{
    const std::int64_t tokens = shape.tokens();
    const std::int64_t keyWidth = shape.headSize + shape.rotaryHeadSize;
    const std::int64_t queries = shape.heads * keyWidth;
    const std::int64_t keysAndValues = shape.heads * (shape.headSize + shape.valueHeadSize);
    const std::int64_t keyValueDown = shape.keyValueLatent + shape.rotaryHeadSize;
    Keeper keep = keeper(shape, layer);

    const std::int64_t queryDown = shape.queryLatent > 0 ? shape.queryLatent : queries;
    addLinear(layer, tokens, {"qkv", shape.hidden, queryDown + keyValueDown});
    keep.untilWeightGrad("qkv.input", tokens * shape.hidden);
    keep.fromInputGrad("qkv.outputGrad", tokens * (queryDown + keyValueDown));
    if (shape.queryLatent > 0) {
        addNorm(shape, layer, "queryNorm", shape.queryLatent);
        addLinear(layer, tokens, {"queryLatent", shape.queryLatent, queries});
        keep.untilInputGrad("queryLatent.normInput", tokens * shape.queryLatent);
        keep.untilWeightGrad("queryLatent.input", tokens * shape.queryLatent);
        keep.fromInputGrad("queryLatent.outputGrad", tokens * queries);
    }
    addNorm(shape, layer, "keyValueNorm", shape.keyValueLatent);
    addLinear(layer, tokens, {"keyValueLatent", shape.keyValueLatent, keysAndValues});
    keep.untilInputGrad("keyValueLatent.normInput", tokens * shape.keyValueLatent);
    keep.untilWeightGrad("keyValueLatent.input", tokens * shape.keyValueLatent);
    keep.fromInputGrad("keyValueLatent.outputGrad", tokens * keysAndValues);

    addWorkspace(layer, "d.key", tokens * queries);
    keep.untilInputGrad("attention.query", tokens * queries);
    keep.untilInputGrad("attention.key", tokens * queries);
    keep.untilInputGrad("attention.value", tokens * shape.heads * shape.valueHeadSize);
    keepAttentionCore(shape, layer);
    addAttentionCore(shape, layer, keyWidth, shape.valueHeadSize);
}

void addPlainMlp(const ModelShape& shape, Layer& layer)
{
    const std::int64_t tokens = shape.tokens();
    const std::int64_t up = shape.gatedMlp ? 2 * shape.ffn : shape.ffn;
    Keeper keep = keeper(shape, layer);
    addLinear(layer, tokens, {"fc1", shape.hidden, up, shape.bias});
    addLinear(layer, tokens, {"fc2", shape.ffn, shape.hidden, shape.bias, Start::Residual});
    keep.untilWeightGrad("fc1.input", tokens * shape.hidden);
    keep.fromInputGrad("fc1.outputGrad", tokens * up);
    keep.untilInputGrad("mlp.activationInput", tokens * shape.ffn);
    if (shape.gatedMlp)
        keep.untilInputGrad("mlp.gateInput", tokens * shape.ffn);
    keep.untilWeightGrad("fc2.input", tokens * shape.ffn);
    keep.fromInputGrad("fc2.outputGrad", tokens * shape.hidden);
}

// Every token is copied to `expertsPerToken` experts; shared experts read the token where it is.
void addExperts(const ModelShape& shape, Layer& layer)
{
    const std::int64_t tokens = shape.tokens();
    const std::int64_t copies = tokens * shape.expertsPerToken;
    const std::int64_t visits = tokens * (shape.expertsPerToken + shape.sharedExperts);
    Keeper keep = keeper(shape, layer);

    addLinear(layer, tokens, {"router", shape.hidden, shape.experts, shape.routerBias && shape.expertBias});
    if (shape.routerBias && !shape.expertBias) // added for the choice of experts alone, without a gradient
        addParameter(layer, "router.correction", 1, shape.experts, Start::Zero);
    keep.untilWeightGrad("router.input", tokens * shape.hidden);
    keep.add("router.probabilities", tokens * shape.experts, 4, Lifetime::UntilInputGrad);
    keep.fromInputGrad("router.outputGrad", tokens * shape.experts); // the logits themselves are fp32 always

    // The memory is that of all experts; the work is that of the tokens' copies and of the shared experts.
    addWork(layer, visits, shape.hidden, 2 * shape.expertFfn);
    addWork(layer, visits, shape.expertFfn, shape.hidden);
    addParameter(layer, "experts.fc1.weight", shape.experts * 2 * shape.expertFfn, shape.hidden, Start::Normal);
    if (shape.expertBias)
        addParameter(layer, "experts.fc1.bias", shape.experts, 2 * shape.expertFfn, Start::Zero);
    addParameter(layer, "experts.fc2.weight", shape.experts * shape.hidden, shape.expertFfn, Start::Residual);
    if (shape.expertBias)
        addParameter(layer, "experts.fc2.bias", shape.experts, shape.hidden, Start::Zero);
    if (shape.sharedExperts > 0) { // together one MLP, as wide as all of them
        const std::int64_t width = shape.sharedExperts * shape.expertFfn;
        addParameter(layer, "shared.fc1.weight", 2 * width, shape.hidden, Start::Normal);
        if (shape.expertBias)
            addParameter(layer, "shared.fc1.bias", 1, 2 * width, Start::Zero);
        addParameter(layer, "shared.fc2.weight", shape.hidden, width, Start::Residual);
        if (shape.expertBias)
            addParameter(layer, "shared.fc2.bias", shape.sharedExperts, shape.hidden, Start::Zero);
    }
    // Per copy of a token: its expert, its row and its weight. Per expert: the first row.
    keep.add("experts.choice", copies, 4, Lifetime::UntilInputGrad);
    keep.add("experts.row", copies, 4, Lifetime::UntilInputGrad);
    keep.add("experts.weight", copies, 4, Lifetime::UntilInputGrad);
    keep.add("experts.begin", shape.experts + 1, 4, Lifetime::UntilWeightGrad);
    keep.untilWeightGrad("experts.input", copies * shape.hidden);
    keep.fromInputGrad("experts.fc1OutputGrad", visits * 2 * shape.expertFfn);
    keep.untilInputGrad("experts.activationInput", visits * shape.expertFfn);
    keep.untilInputGrad("experts.gateInput", visits * shape.expertFfn);
    keep.untilWeightGrad("experts.fc2Input", visits * shape.expertFfn);
    keep.fromInputGrad("experts.fc2OutputGrad", (copies + (shape.sharedExperts > 0 ? tokens : 0)) * shape.hidden);
    keep.untilInputGrad("experts.output", copies * shape.hidden); // for the gradient of the routing weights
    addWorkspace(layer, "d.experts", copies * shape.hidden);
}

// One square matrix on the first token of every sequence.
void addPooler(const ModelShape& shape, Layer& layer)
{
    const std::int64_t values = shape.microbatchSize * shape.hidden;
    Keeper keep = keeper(shape, layer);
    addLinear(layer, shape.microbatchSize, {"pooler", shape.hidden, shape.hidden, true});
    keep.untilInputGrad("head.stream", shape.tokens() * shape.hidden); // the pooler reads its first tokens
    keep.untilWeightGrad("head.input", values);
    keep.untilInputGrad("head.output", values);
}

// The heads that models for tasks have, as the transformers library computes them: a decoder scores every token also
// where one label of a sequence counts; an encoder scores what its pooler made of the first token.
void addTaskHead(const ModelShape& shape, Layer& layer)
{
    Keeper keep = keeper(shape, layer);
    const bool encoder = shape.architecture == Architecture::Encoder, ofSequence = shape.head == Head::SequenceLabels;
    if (!encoder) { // an encoder's layers end with a norm
        addNorm(shape, layer, "norm", shape.hidden);
        keep.untilInputGrad("norm.input", shape.tokens() * shape.hidden);
    }
    if (shape.head == Head::None)
        return;
    if (encoder && ofSequence)
        addPooler(shape, layer);
    const std::int64_t rows = encoder ? shape.targets() : shape.tokens();
    if (shape.head == Head::Reward) {
        addLinear(layer, rows, {"reward", shape.hidden, shape.hidden, true});
        keep.untilWeightGrad("reward.input", rows * shape.hidden);
        keep.fromInputGrad("reward.outputGrad", rows * shape.hidden);
    }
    addLinear(layer, rows, {"score", shape.hidden, shape.labels, encoder || !ofSequence});
    keep.untilWeightGrad("score.input", rows * shape.hidden);
    keep.add("score.probabilities", shape.targets() * shape.labels, 4, Lifetime::UntilInputGrad);
    keep.add("targets", shape.targets(), 4, Lifetime::UntilInputGrad);
    keep.fromInputGrad("score.outputGrad", rows * shape.labels);
}

} // namespace

void addAttention(const ModelShape& shape, Layer& layer)
{
    const std::int64_t tokens = shape.tokens();
    Keeper keep = keeper(shape, layer);
    addNorm(shape, layer, "ln1", shape.hidden);
    keep.untilInputGrad("ln1.input", tokens * shape.hidden);

    const bool latent = shape.keyValueLatent > 0;
    const std::int64_t context = shape.heads * (latent ? shape.valueHeadSize : shape.headSize);
    addWorkspace(layer, "d.ln", tokens * std::max(shape.hidden, context));
    if (latent)
        addLatentProjections(shape, layer);
    else
        addGroupedProjections(shape, layer);

    addLinear(layer, tokens,
              {"projection", context, shape.hidden, shape.bias || shape.projectionBias, Start::Residual});
    if (shape.attentionSinks)
        addParameter(layer, "sinks", 1, shape.heads, Start::Zero);
    keep.untilWeightGrad("projection.input", tokens * context);
    keep.fromInputGrad("projection.outputGrad", tokens * shape.hidden);
    if (shape.dropout)
        keep.add("projection.mask", tokens * shape.hidden, 1, Lifetime::UntilInputGrad);
    if (shape.postNorm) {
        addNorm(shape, layer, "attentionNorm", shape.hidden);
        keep.untilInputGrad("attention.normInput", tokens * shape.hidden);
    }
}

void addMlp(const ModelShape& shape, int index, Layer& layer)
{
    const std::int64_t tokens = shape.tokens();
    Keeper keep = keeper(shape, layer);
    addNorm(shape, layer, "ln2", shape.hidden);
    keep.untilInputGrad("ln2.input", tokens * shape.hidden);
    addWorkspace(layer, "d.ln", tokens * shape.hidden);
    if (hasExperts(shape, index))
        addExperts(shape, layer);
    else
        addPlainMlp(shape, layer);
    if (shape.dropout)
        keep.add("mlp.mask", tokens * shape.hidden, 1, Lifetime::UntilInputGrad);
    if (shape.postNorm) {
        addNorm(shape, layer, "mlpNorm", shape.hidden);
        keep.untilInputGrad("mlp.normInput", tokens * shape.hidden);
    }
}

Layer embeddingLayer(const ModelShape& shape)
{
    const std::int64_t tokens = shape.tokens();
    Layer layer;
    layer.name = "embedding";
    layer.kind = LayerKind::Embedding;
    Keeper keep = keeper(shape, layer);
    if (shape.architecture == Architecture::Vision) {
        // One row of the position table belongs to the class token, which is a parameter, not a patch.
        const std::int64_t patches = shape.microbatchSize * (shape.sequence - 1);
        addLinear(layer, patches, {"patches", shape.patchElements, shape.hidden, true});
        layer.inputGradFlops = layer.inputGradFlopsPerWidth = 0; // input images have no gradient
        addParameter(layer, "classToken", 1, shape.hidden, Start::Zero);
        keep.untilWeightGrad("patches", patches * shape.patchElements);
    } else if (shape.architecture == Architecture::Classifier) {
        addParameter(layer, "table.weight", shape.features, shape.hidden, Start::Normal);
        keep.add("features", shape.inputs(), 4, Lifetime::UntilWeightGrad);
    } else {
        addParameter(layer, "table.weight", shape.vocabulary, shape.hidden, Start::Normal);
        keep.add("tokens", tokens, 4, Lifetime::UntilWeightGrad);
    }
    if (shape.learnedPositions && shape.architecture != Architecture::Classifier)
        addParameter(layer, "positions.weight", shape.sequence, shape.hidden, Start::Normal);
    if (shape.architecture == Architecture::Encoder) {
        addParameter(layer, "segments.weight", 2, shape.hidden, Start::Normal);
        addNorm(shape, layer, "norm", shape.hidden);
        keep.untilInputGrad("norm.input", tokens * shape.hidden);
    }
    keep.fromInputGrad("embedding.outputGrad", tokens * shape.hidden);
    if (shape.dropout)
        keep.add("embedding.mask", tokens * shape.hidden, 1, Lifetime::UntilInputGrad);
    layer.outputBytes = tokens * shape.hidden * bytesOf(shape.dataType);
    return layer;
}

Layer headLayer(const ModelShape& shape)
{
    Layer layer;
    layer.name = "head";
    layer.kind = LayerKind::Head;
    Keeper keep = keeper(shape, layer);
    if (shape.head != Head::Own) {
        addTaskHead(shape, layer);
        return layer;
    }
    const bool encoder = shape.architecture == Architecture::Encoder;
    if (encoder && !shape.tiedHead) {
        const std::int64_t values = shape.microbatchSize * shape.hidden;
        addPooler(shape, layer);
        addWorkspace(layer, "d.ln", values);
        keep.add("head.probabilities", values, 4, Lifetime::UntilInputGrad);
        keep.add("targets", shape.microbatchSize, 4, Lifetime::UntilInputGrad);
        keep.fromInputGrad("head.outputGrad", values);
        return layer;
    }
    // A classifier reads the class token only, a language model every token.
    const bool vision = shape.architecture == Architecture::Vision;
    const std::int64_t rows = shape.targets();
    if (encoder) { // a square matrix and its activation before the norm
        addLinear(layer, rows, {"transform", shape.hidden, shape.hidden, true});
        keep.untilWeightGrad("transform.input", rows * shape.hidden);
        keep.untilInputGrad("transform.activationInput", rows * shape.hidden);
        keep.fromInputGrad("transform.outputGrad", rows * shape.hidden);
    }
    addNorm(shape, layer, "norm", shape.hidden);
    addLinear(layer, rows, {"projection", shape.hidden, shape.vocabulary, vision || encoder});
    addWorkspace(layer, "d.ln", rows * shape.hidden);
    if (shape.tiedHead && !vision && shape.architecture != Architecture::Classifier) {
        layer.sharedParameters = shape.vocabulary * shape.hidden;
        layer.tiedTo = "embedding";
    }
    keep.untilInputGrad("norm.input", shape.tokens() * shape.hidden);
    keep.untilWeightGrad("head.input", rows * shape.hidden);
    keep.add("head.probabilities", rows * shape.vocabulary, 4, Lifetime::UntilInputGrad);
    keep.add("targets", rows, 4, Lifetime::UntilInputGrad);
    if (shape.logitsSoftCap > 0)
        keep.add("head.logits", rows * shape.vocabulary, 4, Lifetime::UntilInputGrad); // capped
    keep.fromInputGrad("head.logitsGrad", rows * shape.vocabulary);
    return layer;
}

} // namespace pipewright
