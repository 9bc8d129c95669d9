// SPDX-License-Identifier: GPL-3.0-or-later
// FLOPs, parameters and kept tensors of each part of a layer: two FLOPs per multiply-add; kept tensors as in arXiv
// 2205.05198, section 4. O(1) per part.
#include "core/workload/layerparts.h"

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
    if (shape.attention == AttentionMemory::Recomputed)
        return;
    Keeper keep = keeper(shape, layer);
    if (shape.attention == AttentionMemory::Streamed) {
        keep.untilInputGrad("attention.probabilities", shape.heads * shape.tokens());
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
    addProduct(layer, tokens, shape.hidden, queries + 2 * keys);
    if (shape.queryKeyValueBias)
        layer.parameters += queries + 2 * keys;
    keep.untilWeightGrad("qkv.input", tokens * shape.hidden);
    keep.fromInputGrad("qkv.outputGrad", tokens * (queries + 2 * keys));
    if (shape.queryKeyNorm) {
        layer.parameters += 2 * normParameters(shape, shape.headSize);
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
    addProduct(layer, tokens, shape.hidden, queryDown + keyValueDown);
    keep.untilWeightGrad("qkv.input", tokens * shape.hidden);
    keep.fromInputGrad("qkv.outputGrad", tokens * (queryDown + keyValueDown));
    if (shape.queryLatent > 0) {
        layer.parameters += normParameters(shape, shape.queryLatent);
        addProduct(layer, tokens, shape.queryLatent, queries);
        keep.untilInputGrad("queryLatent.normInput", tokens * shape.queryLatent);
        keep.untilWeightGrad("queryLatent.input", tokens * shape.queryLatent);
        keep.fromInputGrad("queryLatent.outputGrad", tokens * queries);
    }
    layer.parameters += normParameters(shape, shape.keyValueLatent);
    addProduct(layer, tokens, shape.keyValueLatent, keysAndValues);
    keep.untilInputGrad("keyValueLatent.normInput", tokens * shape.keyValueLatent);
    keep.untilWeightGrad("keyValueLatent.input", tokens * shape.keyValueLatent);
    keep.fromInputGrad("keyValueLatent.outputGrad", tokens * keysAndValues);

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
    addProduct(layer, tokens, shape.hidden, up);
    addProduct(layer, tokens, shape.ffn, shape.hidden);
    if (shape.bias)
        layer.parameters += up + shape.hidden;
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

    addProduct(layer, tokens, shape.hidden, shape.experts);
    keep.untilWeightGrad("router.input", tokens * shape.hidden);
    keep.add("router.probabilities", tokens * shape.experts, 4, Lifetime::UntilInputGrad);
    keep.add("router.outputGrad", tokens * shape.experts, 4, Lifetime::FromInputGrad);

    const std::int64_t before = layer.parameters;
    addProduct(layer, visits, shape.hidden, 2 * shape.expertFfn);
    addProduct(layer, visits, shape.expertFfn, shape.hidden);
    // addProduct counts one matrix each: right for the work of a visit, but all experts are held.
    layer.parameters = before + (shape.experts + shape.sharedExperts) * shape.expertElements()
                       + (shape.routerBias ? shape.experts : 0);
    keep.untilWeightGrad("experts.input", copies * shape.hidden);
    keep.fromInputGrad("experts.fc1OutputGrad", visits * 2 * shape.expertFfn);
    keep.untilInputGrad("experts.activationInput", visits * shape.expertFfn);
    keep.untilInputGrad("experts.gateInput", visits * shape.expertFfn);
    keep.untilWeightGrad("experts.fc2Input", visits * shape.expertFfn);
    keep.fromInputGrad("experts.fc2OutputGrad", visits * shape.hidden);
    keep.untilInputGrad("experts.output", copies * shape.hidden); // for the gradient of the routing weights
}

} // namespace

std::int64_t normParameters(const ModelShape& shape, std::int64_t width)
{
    return shape.bias ? 2 * width : width;
}

void addProduct(Layer& layer, std::int64_t rows, std::int64_t inner, std::int64_t columns)
{
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns);
    layer.forwardFlops += flops;
    layer.inputGradFlops += flops;
    layer.weightGradFlops += flops;
    layer.parameters += inner * columns;
}

void addAttention(const ModelShape& shape, Layer& layer)
{
    const std::int64_t tokens = shape.tokens();
    Keeper keep = keeper(shape, layer);
    layer.parameters += normParameters(shape, shape.hidden);
    keep.untilInputGrad("ln1.input", tokens * shape.hidden);

    const bool latent = shape.keyValueLatent > 0;
    if (latent)
        addLatentProjections(shape, layer);
    else
        addGroupedProjections(shape, layer);

    const std::int64_t context = shape.heads * (latent ? shape.valueHeadSize : shape.headSize);
    addProduct(layer, tokens, context, shape.hidden);
    if (shape.bias || shape.projectionBias)
        layer.parameters += shape.hidden;
    if (shape.attentionSinks)
        layer.parameters += shape.heads;
    keep.untilWeightGrad("projection.input", tokens * context);
    keep.fromInputGrad("projection.outputGrad", tokens * shape.hidden);
    if (shape.dropout)
        keep.add("projection.mask", tokens * shape.hidden, 1, Lifetime::UntilInputGrad);
    if (shape.postNorm) {
        layer.parameters += normParameters(shape, shape.hidden);
        keep.untilInputGrad("attention.normInput", tokens * shape.hidden);
    }
}

void addMlp(const ModelShape& shape, int index, Layer& layer)
{
    const std::int64_t tokens = shape.tokens();
    Keeper keep = keeper(shape, layer);
    layer.parameters += normParameters(shape, shape.hidden);
    keep.untilInputGrad("ln2.input", tokens * shape.hidden);
    if (shape.experts > 0 && index >= shape.denseLayers)
        addExperts(shape, layer);
    else
        addPlainMlp(shape, layer);
    if (shape.dropout)
        keep.add("mlp.mask", tokens * shape.hidden, 1, Lifetime::UntilInputGrad);
    if (shape.postNorm) {
        layer.parameters += normParameters(shape, shape.hidden);
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
        addProduct(layer, patches, shape.patchElements, shape.hidden);
        layer.inputGradFlops = 0;                        // input images have no gradient
        layer.parameters += shape.hidden + shape.hidden; // bias, class token
        keep.untilWeightGrad("patches", patches * shape.patchElements);
    } else if (shape.architecture == Architecture::Classifier) {
        layer.parameters += shape.features * shape.hidden;
        keep.add("features", shape.inputs(), 4, Lifetime::UntilWeightGrad);
    } else {
        layer.parameters += shape.vocabulary * shape.hidden;
        keep.add("tokens", tokens, 4, Lifetime::UntilWeightGrad);
    }
    if (shape.learnedPositions && shape.architecture != Architecture::Classifier)
        layer.parameters += shape.sequence * shape.hidden;
    if (shape.architecture == Architecture::Encoder) {
        layer.parameters += 2 * shape.hidden + normParameters(shape, shape.hidden); // segment table, norm
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
    if (shape.architecture == Architecture::Encoder) { // the pooler: one square matrix on the first token
        addProduct(layer, shape.microbatchSize, shape.hidden, shape.hidden);
        layer.parameters += shape.hidden;
        keep.untilWeightGrad("head.input", shape.microbatchSize * shape.hidden);
        keep.untilInputGrad("head.output", shape.microbatchSize * shape.hidden);
        keep.fromInputGrad("head.outputGrad", shape.microbatchSize * shape.hidden);
        return layer;
    }
    // A classifier reads the class token only, a language model every token.
    const bool vision = shape.architecture == Architecture::Vision;
    const std::int64_t rows = vision ? shape.microbatchSize : shape.tokens();
    layer.parameters += normParameters(shape, shape.hidden);
    addProduct(layer, rows, shape.hidden, shape.vocabulary);
    if (vision)
        layer.parameters += shape.vocabulary;
    if (shape.tiedHead && !vision && shape.architecture != Architecture::Classifier) {
        layer.sharedParameters = shape.vocabulary * shape.hidden;
        layer.tiedTo = "embedding";
    }
    keep.untilInputGrad("norm.input", rows * shape.hidden);
    keep.untilWeightGrad("head.input", rows * shape.hidden);
    keep.add("head.probabilities", rows * shape.vocabulary, 4, Lifetime::UntilInputGrad);
    keep.add("targets", rows, 4, Lifetime::UntilInputGrad);
    keep.fromInputGrad("head.logitsGrad", rows * shape.vocabulary);
    return layer;
}

} // namespace pipewright
