// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/modeljson.h"

#include "core/json/prettyjson.h"
#include "core/workload/layertable.h"
#include "core/workload/parallelism.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

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
const std::initializer_list<NamedValue<Activation>> activations{
    {"gelu_tanh", Activation::GeluTanh}, {"gelu", Activation::Gelu}, {"silu", Activation::Silu}};
const std::initializer_list<NamedValue<RouterScore>> routerScores{{"softmax", RouterScore::Softmax},
                                                                  {"sigmoid", RouterScore::Sigmoid}};
const std::initializer_list<NamedValue<Rotary::Scaling>> rotaryScalings{{"none", Rotary::Scaling::None},
                                                                        {"linear", Rotary::Scaling::Linear},
                                                                        {"llama3", Rotary::Scaling::Llama3},
                                                                        {"yarn", Rotary::Scaling::Yarn}};
const std::initializer_list<NamedValue<Collective>> collectiveNames{
    {"all_gather", Collective::AllGather},         {"grouped_broadcast", Collective::GroupedBroadcast},
    {"all_reduce", Collective::AllReduce},         {"reduce_scatter", Collective::ReduceScatter},
    {"grouped_reduce", Collective::GroupedReduce}, {"all_to_all", Collective::AllToAll}};

template<class Value>
std::string nameIn(const std::initializer_list<NamedValue<Value>>& names, Value value)
{
    for (const NamedValue<Value>& name : names)
        if (name.value == value)
            return std::string(name.name);
    return {};
}

// The optional fields of a shape, for reading and writing.
template<class Shape, class Visit>
void forEachOption(Shape& shape, Visit visit)
{
    visit("gated_mlp", shape.gatedMlp);
    visit("bias", shape.bias);
    visit("query_key_value_bias", shape.queryKeyValueBias);
    visit("projection_bias", shape.projectionBias);
    visit("query_key_norm", shape.queryKeyNorm);
    visit("post_norm", shape.postNorm);
    visit("attention_sinks", shape.attentionSinks);
    visit("learned_positions", shape.learnedPositions);
    visit("tied_head", shape.tiedHead);
    visit("dropout", shape.dropout);
    visit("window", shape.window);
    visit("full_attention_every", shape.fullAttentionEvery);
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

/// What files of gated models mean without saying it.
Activation usualActivation(bool gatedMlp)
{
    return gatedMlp ? Activation::Silu : Activation::GeluTanh;
}

OrderedJson rotaryToJson(const Rotary& rotary)
{
    const Rotary usual;
    OrderedJson json;
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

void writeNumbers(const ModelShape& shape, OrderedJson& json)
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
}

OrderedJson parallelToJson(const Parallelism& parallel)
{
    OrderedJson json;
    for (const auto& [key, degree] : {std::pair{"tensor", parallel.tensor},
                                      {"context", parallel.context},
                                      {"expert", parallel.expert},
                                      {"data", parallel.data}})
        if (degree != 1)
            json[key] = degree;
    if (parallel.sequence)
        json["sequence"] = true;
    return json;
}

void writeTable(const ModelShape& shape, OrderedJson& json)
{
    json["microbatch_size"] = shape.microbatchSize;
    json["data_type"] = nameIn(dataTypes, shape.dataType);
    json["layer_table"] = OrderedJson::array();
    for (const KnownLayer& layer : shape.table)
        json["layer_table"].push_back({{"layer", layer.name},
                                       {"forward", exactDuration(layer.forward)},
                                       {"input_grad", exactDuration(layer.inputGrad)},
                                       {"weight_grad", exactDuration(layer.weightGrad)},
                                       {"backward", exactDuration(layer.backward)},
                                       {"saved", exactSize(layer.saved)},
                                       {"saved_for_weight_grad", exactSize(layer.savedForWeightGrad)},
                                       {"parameters", exactSize(layer.parameters)},
                                       {"output", exactSize(layer.output)}});
}

void readTable(ObjectReader& reader, ModelShape& shape)
{
    shape = tableShape(shape.name, {});
    reader.read("microbatch_size", shape.microbatchSize, 1, anySize);
    reader.readName("data_type", shape.dataType, dataTypes);
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
        entry.finish();
    }
    shape = tableShape(shape.name, std::move(shape.table), shape.dataType, shape.microbatchSize);
}

Parallelism readParallel(ObjectReader&& reader)
{
    constexpr int most = 65'536;
    Parallelism parallel;
    reader.read("tensor", parallel.tensor, 1, most);
    reader.read("context", parallel.context, 1, most);
    reader.read("expert", parallel.expert, 1, most);
    reader.read("data", parallel.data, 1, most);
    reader.read("sequence", parallel.sequence);
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
    OrderedJson json;
    json["name"] = shape.name;
    if (shape.architecture != defaults.architecture)
        json["architecture"] = nameIn(architectures, shape.architecture);
    if (shape.architecture == Architecture::Table) {
        writeTable(shape, json);
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
    if (!(shape.parallel == Parallelism{}))
        json["parallel"] = parallelToJson(shape.parallel);
    return json;
}

ModelShape readShape(ObjectReader& reader)
{
    ModelShape shape;
    reader.read("name", shape.name, Presence::Required);
    reader.readName("architecture", shape.architecture, architectures);
    if (shape.architecture == Architecture::Table) {
        readTable(reader, shape);
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
    reader.readName("attention", shape.attention, attentionMemories);
    forEachOption(shape, OptionReader{reader});
    readNumbers(reader, shape);
    if (const Json* parallel = reader.object("parallel"))
        shape.parallel = readParallel(
            ObjectReader(reader.document(), *parallel, reader.pointerTo("parallel"), reader.diagnostics()));
    return shape;
}

nlohmann::ordered_json deviceToJson(const DeviceSpec& device)
{
    OrderedJson json;
    json["name"] = device.name;
    if (device.group) {
        json["group"] = clusterToJson(*device.group);
        return json;
    }
    json["memory"] = exactSize(device.memory);
    json["peak_flops"] = plainNumber(device.peakFlops);
    json["memory_bandwidth"] = plainNumber(device.memoryBandwidth);
    json["efficiency"] = plainNumber(device.efficiency);
    return json;
}

DeviceSpec readDevice(ObjectReader& reader)
{
    DeviceSpec device;
    reader.read("name", device.name, Presence::Required);
    if (const Json* group = reader.object("group")) {
        Cluster members = readCluster(reader.document(), *group, reader.pointerTo("group"), reader.diagnostics());
        if (members.devices.empty())
            reader.fault("group", "a group without devices", "list the devices that stand for this one");
        for (const DeviceSpec& member : members.devices)
            if (member.group)
                reader.fault("group", "a group within a group", "list all devices in one group");
        const std::string name = device.name;
        device = asOneDevice(std::move(members));
        device.name = name;
        return device;
    }
    reader.readSize("memory", device.memory);
    reader.readRate("peak_flops", device.peakFlops);
    reader.readRate("memory_bandwidth", device.memoryBandwidth);
    reader.readRate("efficiency", device.efficiency);
    return device;
}

nlohmann::ordered_json linkToJson(const LinkSpec& link)
{
    OrderedJson json;
    json["name"] = link.name;
    json["latency"] = exactDuration(link.latency);
    json["bandwidth"] = plainNumber(link.bandwidth);
    if (!link.bus.empty())
        json["bus"] = link.bus;
    return json;
}

LinkSpec readLink(ObjectReader& reader)
{
    LinkSpec link;
    reader.read("name", link.name);
    reader.readDuration("latency", link.latency);
    reader.readRate("bandwidth", link.bandwidth);
    reader.read("bus", link.bus);
    return link;
}

nlohmann::ordered_json clusterToJson(const Cluster& cluster)
{
    OrderedJson json;
    json["name"] = cluster.name;
    json["devices"] = OrderedJson::array();
    for (const DeviceSpec& device : cluster.devices)
        json["devices"].push_back(deviceToJson(device));
    json["link"] = linkToJson(cluster.link);
    for (const auto& [pair, link] : cluster.linkOfPair) {
        OrderedJson entry{{"from", pair.first}, {"to", pair.second}};
        entry.update(linkToJson(link));
        json["links"].push_back(std::move(entry));
    }
    for (const auto& [kind, spec] : cluster.collectives)
        json["collectives"][nameIn(collectiveNames, kind)] = {{"latency", exactDuration(spec.latency)},
                                                              {"bandwidth", plainNumber(spec.bandwidth)}};
    if (const Nodes& nodes = cluster.nodes; nodes.devices > 0) {
        json["nodes"] = {{"devices", nodes.devices},
                         {"count", nodes.count},
                         {"cards", nodes.cards},
                         {"network", linkToJson(nodes.network)}};
        if (nodes.perSwitch > 0)
            json["nodes"]["per_switch"] = nodes.perSwitch;
        if (nodes.oversubscription != 1)
            json["nodes"]["oversubscription"] = plainNumber(nodes.oversubscription);
    }
    if (!cluster.groupedCollectives)
        json["grouped_collectives"] = false;
    for (const GpuShare& share : cluster.gpus) {
        OrderedJson entry{{"gpu", share.gpu}};
        if (share.multiprocessors > 0)
            entry["multiprocessors"] = share.multiprocessors;
        json["gpus"].push_back(std::move(entry));
    }
    return json;
}

void readNodes(ObjectReader& reader, Cluster& cluster)
{
    const Json* value = reader.object("nodes");
    if (value == nullptr)
        return;
    constexpr int most = 65'536;
    Nodes& nodes = cluster.nodes;
    ObjectReader entry(reader.document(), *value, reader.pointerTo("nodes"), reader.diagnostics());
    entry.read("devices", nodes.devices, 1, most, Presence::Required);
    entry.read("count", nodes.count, 1, most, Presence::Required);
    entry.read("cards", nodes.cards, 1, most, Presence::Required);
    entry.read("per_switch", nodes.perSwitch, 1, most);
    entry.readRate("oversubscription", nodes.oversubscription);
    if (nodes.oversubscription < 1)
        entry.fault("oversubscription", "less than 1", "2: half of the nodes' bandwidth leaves the switch");
    if (const Json* network = entry.object("network", Presence::Required)) {
        ObjectReader link(reader.document(), *network, entry.pointerTo("network"), reader.diagnostics());
        nodes.network = readLink(link);
        link.finish();
    }
    entry.finish();
}

void readCollectives(ObjectReader& reader, Cluster& cluster)
{
    if (const Json* collectives = reader.object("collectives")) {
        ObjectReader list(reader.document(), *collectives, reader.pointerTo("collectives"), reader.diagnostics());
        for (const NamedValue<Collective>& known : collectiveNames)
            if (const Json* value = list.object(known.name)) {
                ObjectReader entry(reader.document(), *value, list.pointerTo(known.name), reader.diagnostics());
                CollectiveSpec& spec = cluster.collectives[known.value];
                entry.readDuration("latency", spec.latency);
                entry.readRate("bandwidth", spec.bandwidth, Presence::Required);
                entry.finish();
            }
        list.finish();
    }
    reader.read("grouped_collectives", cluster.groupedCollectives);
}

Cluster readCluster(const LocatedJson& document, const Json& value, const std::string& pointer,
                    Diagnostics& diagnostics)
{
    Cluster cluster;
    ObjectReader reader(document, value, pointer, diagnostics);
    reader.read("name", cluster.name);
    if (const Json* devices = reader.array("devices", Presence::Required)) {
        for (std::size_t i = 0; i < devices->size(); ++i) {
            ObjectReader device(document, (*devices)[i], fmt::format("{}/devices/{}", pointer, i), diagnostics);
            cluster.devices.push_back(readDevice(device));
            device.finish();
        }
    }
    if (const Json* link = reader.object("link")) {
        ObjectReader linkReader(document, *link, reader.pointerTo("link"), diagnostics);
        cluster.link = readLink(linkReader);
        linkReader.finish();
    }
    if (const Json* links = reader.array("links")) {
        for (std::size_t i = 0; i < links->size(); ++i) {
            ObjectReader entry(document, (*links)[i], fmt::format("{}/links/{}", pointer, i), diagnostics);
            std::pair<int, int> pair{0, 0};
            entry.read("from", pair.first, 0, 1 << 20, Presence::Required);
            entry.read("to", pair.second, 0, 1 << 20, Presence::Required);
            const LinkSpec link = readLink(entry);
            if (!cluster.linkOfPair.emplace(pair, link).second)
                entry.fault({}, fmt::format("the link from {} to {} is listed twice", pair.first, pair.second),
                            "keep one of them");
            entry.finish();
        }
    }
    readNodes(reader, cluster);
    readCollectives(reader, cluster);
    if (const Json* gpus = reader.array("gpus")) {
        for (std::size_t i = 0; i < gpus->size(); ++i) {
            ObjectReader entry(document, (*gpus)[i], fmt::format("{}/gpus/{}", pointer, i), diagnostics);
            GpuShare& share = cluster.gpus.emplace_back();
            entry.read("gpu", share.gpu, 0, highestGpu, Presence::Required);
            entry.read("multiprocessors", share.multiprocessors, 1, mostMultiprocessors);
            entry.finish();
        }
        if (!gpus->empty() && gpus->size() != cluster.devices.size())
            reader.fault(
                "gpus",
                fmt::format("says where {} devices run, and the cluster has {}", gpus->size(), cluster.devices.size()),
                "give one entry per device, or leave the list out");
    }
    reader.finish();
    return cluster;
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
