// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/modeljson.h"

#include "core/json/jsontext.h"
#include "core/model/layertable.h"
#include "core/model/parallelism.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t anySize = std::int64_t(1) << 53; // checkShape() knows the real limits

const std::initializer_list<NamedValue<Architecture>> architectures{{"decoder", Architecture::Decoder},
                                                                    {"encoder", Architecture::Encoder},
                                                                    {"vision", Architecture::Vision},
                                                                    {"classifier", Architecture::Classifier},
                                                                    {"layers", Architecture::Table}};
const std::initializer_list<NamedValue<DataType>> dataTypes{{"fp32", DataType::Fp32}, {"bf16", DataType::Bf16}};
const std::initializer_list<NamedValue<AttentionMemory>> attentionMemories{{"stored", AttentionMemory::Stored},
                                                                           {"recomputed", AttentionMemory::Recomputed},
                                                                           {"streamed", AttentionMemory::Streamed}};
const std::initializer_list<NamedValue<Activation>> activations{{"gelu_tanh", Activation::GeluTanh},
                                                                {"gelu", Activation::Gelu},
                                                                {"silu", Activation::Silu},
                                                                {"clamped_silu", Activation::ClampedSilu}};
const std::initializer_list<NamedValue<Head>> heads{{"own", Head::Own},
                                                    {"none", Head::None},
                                                    {"sequence_labels", Head::SequenceLabels},
                                                    {"token_labels", Head::TokenLabels},
                                                    {"reward", Head::Reward}};
const std::initializer_list<NamedValue<RouterScore>> routerScores{{"softmax", RouterScore::Softmax},
                                                                  {"sigmoid", RouterScore::Sigmoid}};
const std::initializer_list<NamedValue<Rotary::Scaling>> rotaryScalings{{"none", Rotary::Scaling::None},
                                                                        {"linear", Rotary::Scaling::Linear},
                                                                        {"llama3", Rotary::Scaling::Llama3},
                                                                        {"yarn", Rotary::Scaling::Yarn}};
// The optional fields of a shape, for reading and writing.
template<class Shape, class Visit>
void forEachOption(Shape& shape, Visit visit)
{
    visit("gated_mlp", shape.gatedMlp);
    visit("bias", shape.bias);
    visit("query_key_value_bias", shape.queryKeyValueBias);
    visit("projection_bias", shape.projectionBias);
    visit("query_key_norm", shape.queryKeyNorm);
    visit("bidirectional", shape.bidirectional);
    visit("post_norm", shape.postNorm);
    visit("attention_sinks", shape.attentionSinks);
    visit("learned_positions", shape.learnedPositions);
    visit("linear_biases", shape.linearBiases);
    visit("embedding_norm", shape.embeddingNorm);
    visit("tied_head", shape.tiedHead);
    visit("dropout", shape.dropout);
    visit("widened", shape.widened);
    visit("narrow_parameters", shape.narrowParameters);
    visit("window", shape.window);
    visit("full_attention_every", shape.fullAttentionEvery);
    visit("labels", shape.labels);
    visit("experts", shape.experts);
    visit("experts_per_token", shape.expertsPerToken);
    visit("shared_experts", shape.sharedExperts);
    visit("expert_ffn", shape.expertFfn);
    visit("router_normalised", shape.routerNormalised);
    visit("router_groups", shape.routerGroups);
    visit("router_groups_per_token", shape.routerGroupsPerToken);
    visit("router_bias", shape.routerBias);
    visit("expert_bias", shape.expertBias);
    visit("dense_layers", shape.denseLayers);
    visit("query_latent", shape.queryLatent);
    visit("key_value_latent", shape.keyValueLatent);
    visit("rotary_head_size", shape.rotaryHeadSize);
    visit("value_head_size", shape.valueHeadSize);
    visit("patch_elements", shape.patchElements);
    visit("features", shape.features);
}

struct OptionReader {
    ObjectReader& reader;
    void operator()(std::string_view key, bool& field) { reader.read(key, field); }
    void operator()(std::string_view key, int& field) { reader.read(key, field, 0, anySize); }
    void operator()(std::string_view key, std::int64_t& field) { reader.read(key, field, 0, anySize); }
};

/// The activation of a model file that states none.
Activation usualActivation(bool gatedMlp)
{
    return gatedMlp ? Activation::Silu : Activation::GeluTanh;
}

Json rotaryToJson(const Rotary& rotary)
{
    const Rotary usual;
    Json json;
    json["base"] = plainNumber(rotary.base);
    if (rotary.scaling != usual.scaling)
        json["scaling"] = nameIn(rotaryScalings, rotary.scaling);
    for (const auto& [key, value, common] : {std::tuple{"factor", rotary.factor, usual.factor},
                                             {"low", rotary.low, usual.low},
                                             {"high", rotary.high, usual.high},
                                             {"attention_factor", rotary.attentionFactor, usual.attentionFactor}})
        if (value != common)
            json[key] = plainNumber(value);
    if (rotary.original != usual.original)
        json["original"] = rotary.original;
    return json;
}

Rotary readRotary(ObjectReader&& reader)
{
    Rotary rotary;
    reader.readRate("base", rotary.base, Presence::Required);
    reader.readName("scaling", rotary.scaling, rotaryScalings);
    reader.readRate("factor", rotary.factor);
    reader.readRate("low", rotary.low);
    reader.readRate("high", rotary.high);
    reader.readRate("attention_factor", rotary.attentionFactor);
    reader.read("original", rotary.original, 0, anySize);
    reader.finish();
    return rotary;
}

void writeNumbers(const ModelShape& shape, Json& json)
{
    const ModelShape usual;
    if (shape.activation != usualActivation(shape.gatedMlp))
        json["activation"] = nameIn(activations, shape.activation);
    if (shape.normEpsilon != usual.normEpsilon)
        json["norm_epsilon"] = plainNumber(shape.normEpsilon);
    if (shape.embeddingScale != usual.embeddingScale)
        json["embedding_scale"] = plainNumber(shape.embeddingScale);
    if (!(shape.rotary == usual.rotary))
        json["rotary"] = rotaryToJson(shape.rotary);
    if (shape.routerScore != usual.routerScore)
        json["router_score"] = nameIn(routerScores, shape.routerScore);
    if (shape.routerScale != usual.routerScale)
        json["router_scale"] = plainNumber(shape.routerScale);
    for (const auto& [key, value] : {std::pair{"attention_soft_cap", shape.attentionSoftCap},
                                     {"logits_soft_cap", shape.logitsSoftCap},
                                     {"query_scale", shape.queryScale},
                                     {"local_rotary_base", shape.localRotaryBase}})
        if (value != 0)
            json[key] = plainNumber(value);
    if (shape.routerBiasRate != usual.routerBiasRate)
        json["router_bias_rate"] = plainNumber(shape.routerBiasRate);
    if (shape.routerBalance != usual.routerBalance)
        json["router_balance"] = plainNumber(shape.routerBalance);
}

void readNumbers(ObjectReader& reader, ModelShape& shape)
{
    shape.activation = usualActivation(shape.gatedMlp);
    reader.readName("activation", shape.activation, activations);
    reader.readRate("norm_epsilon", shape.normEpsilon);
    reader.readRate("embedding_scale", shape.embeddingScale);
    if (const Json* rotary = reader.object("rotary"))
        shape.rotary =
            readRotary(ObjectReader(reader.document(), *rotary, reader.pointerTo("rotary"), reader.diagnostics()));
    reader.readName("router_score", shape.routerScore, routerScores);
    reader.readRate("router_scale", shape.routerScale);
    reader.readRate("attention_soft_cap", shape.attentionSoftCap);
    reader.readRate("logits_soft_cap", shape.logitsSoftCap);
    reader.readRate("query_scale", shape.queryScale);
    reader.readRate("local_rotary_base", shape.localRotaryBase);
    reader.readRate("router_bias_rate", shape.routerBiasRate);
    reader.readRate("router_balance", shape.routerBalance);
}

void readFullAttention(ObjectReader& reader, ModelShape& shape)
{
    const Json* layers = reader.array("full_attention_layers");
    for (std::size_t i = 0; layers && i < layers->size(); ++i)
        if ((*layers)[i].is_number_unsigned() && (*layers)[i].get<std::uint64_t>() < (1U << 30))
            shape.fullAttentionLayers.push_back((*layers)[i].get<int>());
        else
            reader.fault("full_attention_layers", "an element is no number of a layer", "layers count from 0");
}

void writeParallel(const Parallelism& parallel, Json& model)
{
    if (parallel == Parallelism{})
        return;
    Json& json = model["parallel"];
    for (const auto& [key, degree] : {std::pair{"tensor", parallel.tensor},
                                      {"context", parallel.context},
                                      {"expert", parallel.expert},
                                      {"data", parallel.data}})
        if (degree != 1)
            json[key] = degree;
    if (parallel.sequence)
        json["sequence"] = true;
    if (parallel.overlap != 0)
        json["overlap"] = plainNumber(parallel.overlap);
    if (parallel.expertSpread != 1)
        json["expert_spread"] = plainNumber(parallel.expertSpread);
    if (parallel.foldedExperts)
        json["folded_experts"] = true;
    if (parallel.nodeDispatch)
        json["node_dispatch"] = true;
}

template<class Framework, class Visit>
void forEachFlag(Framework& framework, Visit visit)
{
    visit("wide_parameters", framework.wideParameters);
    visit("narrow_inputs", framework.narrowInputs);
    visit("narrow_gradients", framework.narrowGradients);
    visit("whole_vocabulary_gradients", framework.wholeVocabularyGradients);
    visit("gradient_placeholders", framework.gradientPlaceholders);
    visit("gathered_sequence", framework.gatheredSequence);
    visit("experts_weighted_early", framework.expertsWeightedEarly);
    visit("attention_in_both_layouts", framework.attentionInBothLayouts);
}

/// All properties, so that a file shows what there is to change.
Json frameworkToJson(const FrameworkMemory& framework)
{
    Json json{{"loss", nameOf(framework.loss)}, {"vocabulary_multiple", framework.vocabularyMultiple}};
    forEachFlag(framework, [&json](const char* key, bool value) { json[key] = value; });
    json["buffers"] = exactSize(framework.buffers);
    json["cached"] = plainNumber(framework.cached);
    return json;
}

FrameworkMemory readFramework(ObjectReader&& reader)
{
    FrameworkMemory framework;
    reader.readName("loss", framework.loss);
    reader.read("vocabulary_multiple", framework.vocabularyMultiple, 1, 1 << 20);
    bool saysInputs = false;
    forEachFlag(framework, [&](const char* key, bool& value) {
        saysInputs = (reader.read(key, value) && &value == &framework.narrowInputs) || saysInputs;
    });
    reader.readSize("buffers", framework.buffers);
    reader.readRate("cached", framework.cached);
    for (const FrameworkFacts& facts : frameworks) { // older files say all but this of a preset
        FrameworkMemory full = framework;
        full.narrowInputs = facts.keeps.narrowInputs;
        if (!saysInputs && full == facts.keeps)
            framework = full;
    }
    reader.finish();
    return framework;
}

void writeTable(const ModelShape& shape, Json& json)
{
    json["microbatch_size"] = shape.microbatchSize;
    json["data_type"] = nameIn(dataTypes, shape.dataType);
    if (shape.autograd)
        json["autograd"] = true;
    json["layer_table"] = Json::array();
    for (const KnownLayer& layer : shape.table) {
        Json& entry =
            json["layer_table"].emplace_back(Json{{"layer", layer.name},
                                                  {"forward", exactDuration(layer.forward)},
                                                  {"input_grad", exactDuration(layer.inputGrad)},
                                                  {"weight_grad", exactDuration(layer.weightGrad)},
                                                  {"backward", exactDuration(layer.backward)},
                                                  {"saved", exactSize(layer.saved)},
                                                  {"saved_for_weight_grad", exactSize(layer.savedForWeightGrad)},
                                                  {"parameters", exactSize(layer.parameters)},
                                                  {"output", exactSize(layer.output)}});
        if (layer.frozen > 0)
            entry["frozen"] = exactSize(layer.frozen);
        if (layer.shared > 0) {
            entry["shared"] = exactSize(layer.shared);
            entry["shared_with"] = layer.sharedWith;
        }
        if (shape.autograd)
            forEachAutogradField(layer.autograd,
                                 [&entry](const char* key, Bytes bytes) { entry[key] = exactSize(bytes); });
    }
}

void readTable(ObjectReader& reader, ModelShape& shape)
{
    shape = tableShape(shape.name, {});
    reader.read("microbatch_size", shape.microbatchSize, 1, anySize);
    reader.readName("data_type", shape.dataType, dataTypes);
    bool autograd = false;
    reader.read("autograd", autograd);
    const Json* table = reader.array("layer_table", Presence::Required);
    for (std::size_t i = 0; table && i < table->size(); ++i) {
        ObjectReader entry(reader.document(), (*table)[i], fmt::format("{}/{}", reader.pointerTo("layer_table"), i),
                           reader.diagnostics());
        KnownLayer& layer = shape.table.emplace_back();
        entry.read("layer", layer.name, Presence::Required);
        entry.readDuration("forward", layer.forward, Presence::Required);
        entry.readDuration("input_grad", layer.inputGrad, Presence::Required);
        entry.readDuration("weight_grad", layer.weightGrad, Presence::Required);
        layer.backward = layer.inputGrad + layer.weightGrad;
        entry.readDuration("backward", layer.backward);
        entry.readSize("saved", layer.saved, Presence::Required);
        layer.savedForWeightGrad = layer.saved;
        entry.readSize("saved_for_weight_grad", layer.savedForWeightGrad);
        entry.readSize("parameters", layer.parameters, Presence::Required);
        entry.readSize("output", layer.output, Presence::Required);
        entry.readSize("frozen", layer.frozen);
        entry.readSize("shared", layer.shared);
        entry.read("shared_with", layer.sharedWith);
        if (autograd)
            forEachAutogradField(layer.autograd,
                                 [&entry](const char* key, Bytes& bytes) { entry.readSize(key, bytes); });
        entry.finish();
    }
    shape = tableShape(shape.name, std::move(shape.table), shape.dataType, shape.microbatchSize);
    shape.autograd = autograd;
}

Parallelism readParallel(ObjectReader& model)
{
    constexpr int most = 65'536;
    Parallelism parallel;
    const Json* object = model.object("parallel");
    if (!object)
        return parallel;
    ObjectReader reader(model.document(), *object, model.pointerTo("parallel"), model.diagnostics());
    reader.read("tensor", parallel.tensor, 1, most);
    reader.read("context", parallel.context, 1, most);
    reader.read("expert", parallel.expert, 1, most);
    reader.read("data", parallel.data, 1, most);
    reader.read("sequence", parallel.sequence);
    reader.readRate("overlap", parallel.overlap);
    reader.readRate("expert_spread", parallel.expertSpread);
    reader.read("folded_experts", parallel.foldedExperts);
    reader.read("node_dispatch", parallel.nodeDispatch);
    if (std::string before; reader.read("recompute", before), !before.empty() && before != "none")
        reader.fault("recompute", "what a stage recomputes is part of the schedule, as R blocks",
                     "make the design anew with --recompute " + before);
    reader.finish();
    return parallel;
}

} // namespace

nlohmann::ordered_json shapeToJson(const ModelShape& shape)
{
    const ModelShape defaults;
    Json json;
    json["name"] = shape.name;
    if (shape.architecture != defaults.architecture)
        json["architecture"] = nameIn(architectures, shape.architecture);
    if (shape.architecture == Architecture::Table) {
        writeTable(shape, json);
        writeParallel(shape.parallel, json);
        return json;
    }
    json["layers"] = shape.layers;
    json["hidden"] = shape.hidden;
    json["heads"] = shape.heads;
    json["key_value_heads"] = shape.keyValueHeads;
    json["head_size"] = shape.headSize;
    json["ffn"] = shape.ffn;
    json["vocabulary"] = shape.vocabulary;
    json["sequence"] = shape.sequence;
    if (shape.sequencePieces != 1)
        json["sequence_pieces"] = shape.sequencePieces;
    json["microbatch_size"] = shape.microbatchSize;
    json["data_type"] = nameIn(dataTypes, shape.dataType);
    if (shape.products != ProductType::Own)
        json["products"] = nameOf(shape.products);
    json["attention"] = nameIn(attentionMemories, shape.attention);
    // Both shapes are visited in the same order: first the defaults, then the differences.
    std::vector<std::int64_t> usual;
    forEachOption(defaults, [&usual](std::string_view, const auto& field) { usual.push_back(field); });
    std::size_t at = 0;
    forEachOption(shape, [&](std::string_view key, const auto& field) {
        if (static_cast<std::int64_t>(field) != usual[at++])
            json[std::string(key)] = field;
    });
    writeNumbers(shape, json);
    if (!shape.fullAttentionLayers.empty())
        json["full_attention_layers"] = shape.fullAttentionLayers;
    if (shape.head != defaults.head)
        json["head"] = nameIn(heads, shape.head);
    writeParallel(shape.parallel, json);
    if (!(shape.framework == FrameworkMemory{}))
        json["framework"] = frameworkToJson(shape.framework);
    return json;
}

ModelShape readShape(ObjectReader& reader)
{
    ModelShape shape;
    reader.read("name", shape.name, Presence::Required);
    reader.readName("architecture", shape.architecture, architectures);
    if (shape.architecture == Architecture::Table) {
        readTable(reader, shape);
        shape.parallel = readParallel(reader);
        return shape;
    }
    reader.read("layers", shape.layers, 1, anySize, Presence::Required);
    reader.read("hidden", shape.hidden, 1, anySize, Presence::Required);
    reader.read("heads", shape.heads, 1, anySize, Presence::Required);
    shape.keyValueHeads = shape.heads;
    reader.read("key_value_heads", shape.keyValueHeads, 1, anySize);
    shape.headSize = std::max<std::int64_t>(1, shape.hidden / shape.heads);
    reader.read("head_size", shape.headSize, 1, anySize);
    reader.read("ffn", shape.ffn, 1, anySize, Presence::Required);
    reader.read("vocabulary", shape.vocabulary, 1, anySize, Presence::Required);
    reader.read("sequence", shape.sequence, 1, anySize, Presence::Required);
    reader.read("sequence_pieces", shape.sequencePieces, 1, 1 << 20);
    reader.read("microbatch_size", shape.microbatchSize, 1, anySize, Presence::Required);
    reader.readName("data_type", shape.dataType, dataTypes, Presence::Required);
    reader.readName("products", shape.products);
    reader.readName("attention", shape.attention, attentionMemories);
    forEachOption(shape, OptionReader{reader});
    readNumbers(reader, shape);
    readFullAttention(reader, shape);
    reader.readName("head", shape.head, heads);
    shape.parallel = readParallel(reader);
    if (const Json* framework = reader.object("framework"))
        shape.framework = readFramework(
            ObjectReader(reader.document(), *framework, reader.pointerTo("framework"), reader.diagnostics()));
    return shape;
}

std::string_view nameInModel(Optimizer optimizer)
{
    return factsOf(inModel(optimizer)).nameInModel;
}

void readOptimizer(ObjectReader& reader, std::string_view key, Optimizer& optimizer)
{
    std::vector<NamedValue<Optimizer>> names;
    for (const OptimizerFacts& facts : optimizers)
        if (!facts.nameInModel.empty())
            names.push_back({facts.nameInModel, facts.optimizer});
    reader.readName(key, optimizer, std::span<const NamedValue<Optimizer>>(names), Presence::Optional);
}

} // namespace pipewright
