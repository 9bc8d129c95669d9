// SPDX-License-Identifier: GPL-3.0-or-later
// Ranges of a model's dimensions, and the models that the built-in backends can train.
#include "core/model/layertable.h"
#include "core/model/parallelism.h"
#include "core/model/transformer.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

void require(Diagnostics& wrong, std::string_view name, std::int64_t value, std::int64_t low, std::int64_t high)
{
    if (value < low || value > high)
        wrong.push_back({Severity::Error, fmt::format("model.{}", name), fmt::format("{} is out of range", value),
                         fmt::format("between {} and {}", low, high)});
}

void requireAbove(Diagnostics& wrong, std::string_view name, double value, double low)
{
    if (!(value > low && value < 1e12))
        wrong.push_back({Severity::Error, fmt::format("model.{}", name), fmt::format("{} is out of range", value),
                         fmt::format("more than {}", low)});
}

} // namespace

Diagnostics checkShape(const ModelShape& shape)
{
    if (shape.architecture == Architecture::Table && shape.framework != FrameworkMemory{})
        return {{Severity::Error, "model.framework", "a table of layers says itself what they keep", "use none"}};
    if (shape.architecture == Architecture::Table)
        return checkTable(shape);
    Diagnostics wrong;
    constexpr std::int64_t wide = 1'000'000;
    constexpr std::int64_t deep = 10'000;
    require(wrong, "layers", shape.layers, 1, deep);
    require(wrong, "hidden", shape.hidden, 1, wide);
    require(wrong, "heads", shape.heads, 1, deep);
    require(wrong, "key_value_heads", shape.keyValueHeads, 1, deep);
    require(wrong, "head_size", shape.headSize, 1, wide);
    require(wrong, "ffn", shape.ffn, 1, 8 * wide);
    require(wrong, "vocabulary", shape.vocabulary, 1, 100 * wide);
    require(wrong, "sequence", shape.sequence, 1, 100 * wide);
    require(wrong, "microbatch_size", shape.microbatchSize, 1, wide);
    require(wrong, "experts", shape.experts, 0, 100'000);
    require(wrong, "shared_experts", shape.sharedExperts, 0, deep);
    require(wrong, "experts_per_token", shape.expertsPerToken, shape.experts > 0 ? 1 : 0, shape.experts);
    require(wrong, "expert_ffn", shape.expertFfn, shape.experts > 0 ? 1 : 0, 8 * wide);
    require(wrong, "dense_layers", shape.denseLayers, 0, deep);
    require(wrong, "query_latent", shape.queryLatent, 0, wide);
    require(wrong, "key_value_latent", shape.keyValueLatent, 0, wide);
    require(wrong, "rotary_head_size", shape.rotaryHeadSize, 0, wide);
    require(wrong, "value_head_size", shape.valueHeadSize, shape.keyValueLatent > 0 ? 1 : 0, wide);
    require(wrong, "window", shape.window, 0, 100 * wide);
    require(wrong, "full_attention_every", shape.fullAttentionEvery, 0, deep);
    for (std::size_t i = 0; i < shape.fullAttentionLayers.size(); ++i)
        require(wrong, "full_attention_layers", shape.fullAttentionLayers[i],
                i == 0 ? 0 : shape.fullAttentionLayers[i - 1] + 1, deep);
    const bool labelled = shape.head != Head::Own && shape.head != Head::None;
    require(wrong, "labels", shape.labels, labelled ? 1 : 0, labelled ? wide : 0);
    require(wrong, "router_groups", shape.routerGroups, 1, std::max(shape.experts, 1));
    require(wrong, "router_groups_per_token", shape.routerGroupsPerToken, 1, shape.routerGroups);
    requireAbove(wrong, "norm_epsilon", shape.normEpsilon, 0);
    requireAbove(wrong, "embedding_scale", shape.embeddingScale, 0);
    for (const auto& [name, value] : {std::pair{"attention_soft_cap", shape.attentionSoftCap},
                                      {"logits_soft_cap", shape.logitsSoftCap},
                                      {"query_scale", shape.queryScale},
                                      {"local_rotary_base", shape.localRotaryBase}})
        if (value != 0) // 0: there is none
            requireAbove(wrong, name, value, 0);
    requireAbove(wrong, "router_scale", shape.routerScale, 0);
    requireAbove(wrong, "rotary.base", shape.rotary.base, 1);
    requireAbove(wrong, "rotary.factor", shape.rotary.factor, 0);
    requireAbove(wrong, "rotary.attention_factor", shape.rotary.attentionFactor, 0);
    if (shape.rotary.scaling == Rotary::Scaling::Llama3 || shape.rotary.scaling == Rotary::Scaling::Yarn) {
        require(wrong, "rotary.original", shape.rotary.original, 1, 100 * wide);
        requireAbove(wrong, "rotary.low", shape.rotary.low, 0);
        requireAbove(wrong, "rotary.high", shape.rotary.high, shape.rotary.low);
    }
    if (shape.architecture == Architecture::Vision)
        require(wrong, "sequence", shape.sequence, 2, 100 * wide); // the class token and a patch
    require(wrong, "patch_elements", shape.patchElements, shape.architecture == Architecture::Vision ? 1 : 0, wide);
    const bool classifier = shape.architecture == Architecture::Classifier;
    require(wrong, "features", shape.features, classifier ? 257 : 0, classifier ? wide : 0);
    require(wrong, "sequence_pieces", shape.sequencePieces, 1, classifier ? 1 : deep);
    require(wrong, "framework.vocabulary_multiple", shape.framework.vocabularyMultiple, 1, wide);
    if (!(shape.framework.cached >= 0 && shape.framework.cached < 1))
        wrong.push_back({Severity::Error, "model.framework.cached",
                         fmt::format("{} is no share of what is reserved", shape.framework.cached),
                         "0: not known; less than 1"});
    if (shape.products != ProductType::Own
        && (shape.dataType != DataType::Bf16 || shape.architecture == Architecture::Classifier
            || shape.architecture == Architecture::Table))
        wrong.push_back({Severity::Error, "model.products",
                         fmt::format("products in {} are those of transformers in bf16", nameOf(shape.products)),
                         "leave it out, or write \"data_type\": \"bf16\""});
    if (shape.narrowParameters && shape.products == ProductType::Own)
        wrong.push_back({Severity::Error, "model.narrow_parameters",
                         "products read the parameters' own type, so that there is no narrower one",
                         "leave it out, or use --precision fp8-parameters"});
    else if (shape.narrowParameters && (!shape.framework.narrowInputs || shape.framework.wideParameters))
        wrong.push_back({Severity::Error, "model.narrow_parameters",
                         fmt::format("with the framework {} parameters are held in a wider type and cast, and none "
                                     "exist in {} alone",
                                     nameOf(shape.framework), nameOf(shape.products)),
                         fmt::format("use --framework megatron, or --precision {}", nameOf(shape.products))});
    if (shape.widened && shape.dataType != DataType::Bf16)
        wrong.push_back({Severity::Error, "model.widened", "fp32 values need no wider copies", "leave it out"});
    if (!shape.fullAttentionLayers.empty() && (shape.fullAttentionEvery > 0 || shape.window == 0))
        wrong.push_back({Severity::Error, "model.full_attention_layers",
                         shape.window == 0 ? "without a window every layer attends to all keys"
                                           : "which layers attend to all keys is said twice",
                         "leave it out, or give a window and no full_attention_every"});
    if (shape.head != Head::Own
        && !(shape.architecture == Architecture::Decoder
             || (shape.architecture == Architecture::Encoder && shape.head != Head::Reward)))
        wrong.push_back({Severity::Error, "model.head", "this architecture has no such head", "leave it out"});
    if (shape.bidirectional && shape.architecture != Architecture::Decoder)
        wrong.push_back({Severity::Error, "model.bidirectional",
                         "whether tokens attend to later ones is a question for decoders alone", "leave it out"});
    if (shape.embeddingNorm && shape.architecture != Architecture::Decoder)
        wrong.push_back({Severity::Error, "model.embedding_norm",
                         "whether a norm is behind the embedding is a question for decoders alone", "leave it out"});
    if (shape.linearBiases
        && (shape.learnedPositions || !(shape.rotary == Rotary{}) || shape.localRotaryBase > 0
            || shape.keyValueLatent > 0 || shape.attentionSoftCap > 0 || shape.architecture != Architecture::Decoder
            || shape.bidirectional))
        wrong.push_back({Severity::Error, "model.linear_biases",
                         "linear biases take the place of positions, in decoders that look back, without latent "
                         "attention and without a cap of its scores",
                         "leave it out, or write \"learned_positions\": false and leave out the others"});
    if (!wrong.empty())
        return wrong;
    if (shape.sequencePieces < 1 || shape.sequence % shape.sequencePieces != 0)
        wrong.push_back(
            {Severity::Error, "model.sequence",
             fmt::format("{} tokens cannot be cut into {} equal pieces", shape.sequence, shape.sequencePieces),
             "use a sequence that is a multiple of the pieces"});
    if (shape.routerBiasRate < 0 || (shape.routerBiasRate > 0 && !shape.routerBias))
        wrong.push_back({Severity::Error, "model.router_bias_rate", "there is no correction that it could move",
                         "use 0, or a positive rate with router_bias"});
    if (shape.routerBalance < 0 || (shape.routerBalance > 0 && shape.experts == 0))
        wrong.push_back({Severity::Error, "model.router_balance", "there are no experts to balance",
                         "use 0, or a positive coefficient with experts"});
    if (shape.experts > 0
        && (shape.experts % shape.routerGroups != 0
            || shape.experts / shape.routerGroups * shape.routerGroupsPerToken < shape.expertsPerToken))
        wrong.push_back(
            {Severity::Error, "model.router_groups",
             fmt::format("{} experts in {} groups, of which a token visits {}, cannot give each token {} of them",
                         shape.experts, shape.routerGroups, shape.routerGroupsPerToken, shape.expertsPerToken),
             "use a divisor of experts, and groups with enough of them"});
    if (shape.activation == Activation::ClampedSilu && !shape.gatedMlp && (shape.experts == 0 || shape.denseLayers > 0))
        wrong.push_back({Severity::Error, "model.activation",
                         "the clamped activation multiplies two halves of an MLP's outputs", "use silu, or gated_mlp"});
    if (shape.heads % shape.keyValueHeads != 0)
        wrong.push_back(
            {Severity::Error, "model.key_value_heads",
             fmt::format("{} heads cannot share {} key and value heads evenly", shape.heads, shape.keyValueHeads),
             "use a divisor of heads"});

    // Products of numbers in range may still exceed 64 bits.
    const double tokens = static_cast<double>(shape.sequence) * static_cast<double>(shape.microbatchSize);
    const double widest = static_cast<double>(
        std::max({shape.hidden, shape.ffn, shape.vocabulary, shape.heads * (shape.headSize + shape.rotaryHeadSize),
                  shape.heads * shape.sequence, shape.expertFfn * std::max(shape.expertsPerToken, 1)}));
    const double parameters = static_cast<double>(shape.layers) * static_cast<double>(shape.hidden)
                              * (4.0 * widest + 3.0 * shape.experts * static_cast<double>(shape.expertFfn));
    if (tokens * widest > 1e14 || parameters > 1e17)
        wrong.push_back({Severity::Error, "model", "the dimensions together give sizes beyond any machine",
                         "check sequence, microbatch_size, vocabulary and layers"});
    for (Diagnostic& diagnostic : checkParallelism(shape))
        wrong.push_back(std::move(diagnostic));
    if (!wrong.empty())
        return wrong;
    try {
        layersOf(shape);
    } catch (const Error& error) { // an attribute or a tensor of the graph beyond its limits
        for (const Diagnostic& fault : error.diagnostics())
            wrong.push_back({Severity::Error, "model", fault.where + ": " + fault.what, fault.hint});
    }
    return wrong;
}

AttentionCore attentionCoreOf(const ModelShape& shape)
{
    if (shape.keyValueLatent > 0)
        return AttentionCore::Latent;
    const bool plain = shape.learnedPositions && shape.keyValueHeads == shape.heads && !shape.postNorm
                       && !shape.attentionSinks && shape.attentionSoftCap == 0 && shape.queryScale == 0
                       && shape.heads * shape.headSize == shape.hidden && !shape.queryKeyNorm && shape.window == 0
                       && shape.looksBack();
    return plain ? AttentionCore::Plain : AttentionCore::Grouped;
}

std::int64_t windowOf(const ModelShape& shape, int layer)
{
    const bool looksAtAll =
        (shape.fullAttentionEvery > 0 && (layer + 1) % shape.fullAttentionEvery == 0)
        || std::binary_search(shape.fullAttentionLayers.begin(), shape.fullAttentionLayers.end(), layer);
    return looksAtAll ? 0 : shape.window;
}

bool hasTiedHead(const ModelShape& shape)
{
    return shape.head == Head::Own && shape.tiedHead
           && (shape.architecture == Architecture::Decoder || shape.architecture == Architecture::Encoder);
}

bool hasExperts(const ModelShape& shape, int layer)
{
    return shape.experts > 0 && layer >= shape.denseLayers;
}

AttentionMemory attentionOnHost(const ModelShape& shape)
{
    switch (attentionCoreOf(shape)) {
    case AttentionCore::Plain: return AttentionMemory::Stored;
    case AttentionCore::Grouped:
    case AttentionCore::Latent: break;
    }
    return AttentionMemory::Streamed;
}

Diagnostics whyNotRunnable(const ModelShape& shape)
{
    Diagnostics reasons;
    const auto need = [&reasons](bool holds, const char* field, const char* what, const char* hint) {
        if (!holds)
            reasons.push_back({Severity::Error, std::string("model.") + field, what, hint});
    };
    if (!(shape.parallel == Parallelism{}))
        reasons.push_back({Severity::Error, "model.parallel",
                           "groups of devices and recomputation are predicted, not trained: " + textOf(shape.parallel),
                           "make the design without them"});
    need(shape.products == ProductType::Own, "products", "products in FP8 and NVFP4 are predicted, not trained here",
         "use bf16: --precision bf16");
    if (const std::optional<Diagnostic> why = whyNotAllocated(shape.framework))
        reasons.push_back(*why);
    if (shape.architecture == Architecture::Table) {
        need(false, "architecture", "a table of layers says what they cost and not what they compute",
             "run it with --backend torch and your module, or with blocks that take the layers' times");
        return reasons;
    }
    const bool classifier = shape.architecture == Architecture::Classifier;
    need(!shape.dropout, "dropout", "training here has no dropout", "switch it off, as in --scale dropout=off");
    need(shape.routerBalance == 0 || shape.routerScore == RouterScore::Softmax, "router_balance",
         "the load-balancing term here is that of routers with a softmax", "use 0, and router_bias_rate instead");
    need(!shape.expertBias || shape.sharedExperts == 0, "expert_bias",
         "biases of experts that every token visits are not built in", "switch them off");
    need(!shape.postNorm || !(shape.bias || classifier || shape.architecture == Architecture::Encoder), "post_norm",
         "norms on both sides of a part are RMS norms here, which have no shift", "switch it or biases off");
    if (classifier) {
        need(shape.experts == 0, "experts", "a classifier here has no experts", "use 0");
        return reasons; // it has no attention
    }
    need(shape.head == Head::Own, "head",
         "training here ends with the architecture's own head: heads of labels and rewards, and models without a head, "
         "are predicted",
         "train it with --backend torch and your module, or take \"head\": \"own\"");
    const bool latent = attentionCoreOf(shape) == AttentionCore::Latent,
               decoder = shape.architecture == Architecture::Decoder;
    need(shape.embeddingScale == 1 || (decoder && !shape.learnedPositions), "embedding_scale",
         "embeddings are multiplied in decoders with rotary positions", "use 1");
    need(!latent || (!shape.attentionSinks && shape.attentionSoftCap == 0 && shape.queryScale == 0), "attention_sinks",
         "latent attention here has neither sinks nor a cap or scale of its scores", "leave them out");
    need(shape.logitsSoftCap == 0 || decoder, "logits_soft_cap", "only decoders' logits are capped here", "use 0");
    need((shape.looksBack() && !shape.postNorm) || !latent, "key_value_latent",
         "latent attention here looks back only, behind one norm", "use 0, or a decoder without post_norm");
    need(shape.looksBack() || shape.sequencePieces == 1, "sequence_pieces",
         "every token looks at the whole sequence, so its pieces cannot follow one another", "use 1");
    need((decoder && !shape.postNorm) || shape.experts == 0, "experts",
         "mixtures of experts here stand behind their norm alone, in decoders", "use 0");
    need(shape.looksBack() || shape.window == 0, "window", "windows here are those of attention that looks back",
         "use 0");
    need(!latent || (shape.rotaryHeadSize > 0 && !shape.learnedPositions), "rotary_head_size",
         "latent attention here has rotary positions", "use an even number, and no learned positions");
    need(!shape.bias || !(latent || shape.queryKeyNorm), "bias",
         "norms within attention are RMS norms here, which have no shift", "switch biases off");
    need(latent || shape.queryLatent == 0, "query_latent", "a latent of queries alone is not built in", "use 0");
    need(shape.learnedPositions || shape.linearBiases || (latent ? shape.rotaryHeadSize : shape.headSize) % 2 == 0,
         "head_size", "rotary positions turn pairs of values", "use an even number");
    return reasons;
}

bool isRunnable(const ModelShape& shape)
{
    return whyNotRunnable(shape).empty();
}

bool hasKnownPasses(const ModelShape& shape)
{
    if (shape.framework == FrameworkMemory{} && shape.products == ProductType::Own)
        return isRunnable(shape);
    ModelShape plain = shape;
    plain.products = ProductType::Own;
    plain.narrowParameters = false;
    plain.framework = {};
    return isRunnable(plain);
}

} // namespace pipewright
