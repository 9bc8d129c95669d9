// SPDX-License-Identifier: GPL-3.0-or-later
// Ranges of a model's dimensions, and the models that the built-in backends can train.
#include "core/workload/layertable.h"
#include "core/workload/parallelism.h"
#include "core/workload/transformer.h"

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

} // namespace

Diagnostics checkShape(const ModelShape& shape)
{
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
    require(wrong, "patch_elements", shape.patchElements, shape.architecture == Architecture::Vision ? 1 : 0, wide);
    const bool classifier = shape.architecture == Architecture::Classifier;
    require(wrong, "features", shape.features, classifier ? 257 : 0, classifier ? wide : 0);
    require(wrong, "sequence_pieces", shape.sequencePieces, 1, classifier ? 1 : deep);
    if (!wrong.empty())
        return wrong;
    if (shape.sequencePieces < 1 || shape.sequence % shape.sequencePieces != 0)
        wrong.push_back(
            {Severity::Error, "model.sequence",
             fmt::format("{} tokens cannot be cut into {} equal pieces", shape.sequence, shape.sequencePieces),
             "use a sequence that is a multiple of the pieces"});
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
    return wrong;
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
    if (shape.architecture == Architecture::Table) {
        need(false, "architecture", "a table of layers says what they cost and not what they compute",
             "run it with --backend torch and your module, or with blocks that take the layers' times");
        return reasons;
    }
    const bool classifier = shape.architecture == Architecture::Classifier;
    need(classifier || shape.architecture == Architecture::Decoder, "architecture",
         "only decoders and classifiers can be trained here", "use decoder or classifier");
    need(shape.dataType == DataType::Fp32, "data_type", "training here is in fp32", "use fp32");
    need(!shape.dropout, "dropout", "training here has no dropout", "switch it off");
    need(!shape.gatedMlp, "gated_mlp", "gated MLPs are not built in", "switch it off");
    need(shape.experts == 0, "experts", "experts are not built in", "use 0");
    need(shape.bias && (classifier || shape.queryKeyValueBias), "bias", "the built-in layers have biases",
         "switch them on");
    if (classifier)
        return reasons; // it has no attention
    need(shape.attention != AttentionMemory::Recomputed, "attention", "attention is not recomputed here",
         "use stored or streamed");
    need(shape.keyValueHeads == shape.heads, "key_value_heads", "grouped-query attention is not built in",
         "use as many as heads");
    need(shape.heads * shape.headSize == shape.hidden, "head_size", "heads x head_size is not hidden",
         "make them equal");
    need(shape.keyValueLatent == 0 && shape.queryLatent == 0, "key_value_latent", "latent attention is not built in",
         "use 0");
    need(!shape.queryKeyNorm, "query_key_norm", "a norm on queries and keys is not built in", "switch it off");
    need(!shape.postNorm, "post_norm", "norms behind attention and MLP are not built in", "switch it off");
    need(!shape.attentionSinks, "attention_sinks", "attention sinks are not built in", "switch it off");
    need(shape.learnedPositions, "learned_positions", "rotary positions are not built in", "switch them on");
    return reasons;
}

bool isRunnable(const ModelShape& shape)
{
    return whyNotRunnable(shape).empty();
}

} // namespace pipewright
