// SPDX-License-Identifier: GPL-3.0-or-later
// JSON → TensorGraph and back; faults carry file and line. O(text).
#include "core/files/tensorgraphfile.h"

#include "core/base/formattedtext.h"
#include "core/base/textfile.h"
#include "core/files/designfile.h"
#include "core/json/jsontext.h"
#include "core/json/locatedjson.h"
#include "core/model/mlpgraph.h"
#include "core/model/modelgraph.h"
#include "core/model/transformer.h"
#include "core/presets/clusterjson.h"
#include "core/presets/modelfile.h"
#include "core/presets/modeljson.h"
#include "core/presets/presets.h"
#include "core/sharding/sharedstage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr int graphVersion = 1;
constexpr std::size_t mostNodes = 100'000;
constexpr std::int64_t longestDimension = std::int64_t(1) << 40;

class GraphReader {
public:
    explicit GraphReader(std::shared_ptr<const LocatedJson> source) : m_source(std::move(source)), m_document(*m_source)
    {
    }

    GraphFile read()
    {
        GraphFile file;
        ObjectReader reader(m_document, m_document.value, "", m_diagnostics);
        int ignored = graphVersion;
        reader.read("pipewright", ignored, graphVersion, graphVersion, Presence::Required);
        std::string name;
        reader.read("name", name);
        int bytesPerElement = 4, stateBytes = 4, segments = 1;
        const Json* nodes = reader.array("graph");
        const Json* mlp = reader.object("mlp");
        const bool model = m_document.value.is_object() && m_document.value.contains("model");
        if (nodes) {
            reader.read("bytes_per_element", bytesPerElement, 1, 16);
            stateBytes = bytesPerElement;
            reader.read("state_bytes_per_parameter", stateBytes, 0, 256);
            readNodes(*nodes, file.graph);
        } else if (mlp) {
            reader.read("bytes_per_element", bytesPerElement, 1, 16);
            stateBytes = bytesPerElement;
            reader.read("state_bytes_per_parameter", stateBytes, 0, 256);
            located("/mlp", [&] { file.graph = mlpGraph(readMlp(*mlp)); });
        } else if (model) {
            reader.read("segments", segments, 1, maxSegments);
            readModel(reader, segments, file.graph);
        } else {
            reader.fault({}, "there is nothing to share out", "add \"graph\", \"mlp\" or \"model\"");
        }
        if (!model || nodes || mlp) {
            file.graph.bytesPerElement = bytesPerElement;
            file.graph.stateBytesPerParameter = stateBytes;
        }
        if (!name.empty())
            file.graph.name = name;
        file.cluster = readCluster(reader);
        reader.finish();
        if (m_diagnostics.empty())
            for (const Diagnostic& wrong : GraphFile{file.graph, {}, m_source}.locate(file.graph.check()))
                addBounded(m_diagnostics, wrong);
        if (!m_diagnostics.empty())
            throw Error(std::move(m_diagnostics));
        return file;
    }

private:
    /// Adds the place in the file to errors thrown by `job`.
    template<class Job>
    bool located(const std::string& pointer, Job job)
    {
        try {
            job();
            return true;
        } catch (const Error& error) {
            for (const Diagnostic& wrong : error.diagnostics()) {
                std::string precise = "/" + wrong.where;
                std::replace(precise.begin(), precise.end(), '.', '/');
                const bool inside = precise.starts_with(pointer);
                addBounded(m_diagnostics,
                           {wrong.severity, m_document.placeOf(inside ? precise : pointer),
                            wrong.where.empty() || inside ? wrong.what : fmt::format("{}: {}", wrong.where, wrong.what),
                            wrong.hint});
            }
            return false;
        }
    }

    std::vector<std::int64_t> readLengths(ObjectReader& reader, std::string_view key, Presence presence)
    {
        std::vector<std::int64_t> lengths;
        const Json* list = reader.array(key, presence);
        if (!list)
            return lengths;
        if (list->size() > 1000)
            reader.fault(key, fmt::format("{} numbers", list->size()), "at most 1000");
        else
            for (const Json& value : *list) {
                const bool whole = value.is_number_integer() && value >= 1 && value <= longestDimension;
                if (!whole) {
                    reader.fault(key, fmt::format("\"{}\" contains {}", key, jsonText(value).substr(0, 30)),
                                 "use whole numbers from 1");
                    break;
                }
                lengths.push_back(value.get<std::int64_t>());
            }
        return lengths;
    }

    MlpShape readMlp(const Json& value)
    {
        MlpShape shape;
        ObjectReader reader(m_document, value, "/mlp", m_diagnostics);
        reader.read("batch", shape.batch, 1, longestDimension, Presence::Required);
        shape.widths = readLengths(reader, "widths", Presence::Required);
        reader.read("activation", shape.activation);
        reader.read("bias", shape.bias);
        reader.finish();
        return shape;
    }

    void readModel(ObjectReader& reader, int segments, TensorGraph& graph)
    {
        const Json& value = m_document.value["model"];
        if (value.is_string()) {
            std::string name;
            reader.read("model", name);
            located("/model", [&] {
                const ModelFile model = loadModel(name);
                graph = transformerGraph(model.shape, stateBytes(model.shape.dataType, Optimizer::AdamW), segments);
            });
            return;
        }
        const Json* object = reader.object("model");
        if (!object)
            return;
        const std::size_t before = m_diagnostics.size();
        ObjectReader modelReader(m_document, *object, "/model", m_diagnostics);
        const ModelShape shape = readShape(modelReader);
        Optimizer optimizer = Optimizer::AdamW;
        readOptimizer(modelReader, "optimizer", optimizer);
        modelReader.finish();
        if (m_diagnostics.size() == before)
            located("/model", [&] {
                if (Diagnostics wrong = checkShape(shape); !wrong.empty())
                    throw Error(std::move(wrong));
                graph = transformerGraph(shape, stateBytes(shape.dataType, optimizer), segments);
            });
    }

    void readNodes(const Json& list, TensorGraph& graph)
    {
        if (list.size() > mostNodes) {
            addBounded(m_diagnostics, {Severity::Error, m_document.placeOf("/graph"),
                                       fmt::format("{} nodes", list.size()), fmt::format("at most {}", mostNodes)});
            return;
        }
        for (std::size_t i = 0; i < list.size(); ++i)
            if (!readNode(list[i], fmt::format("/graph/{}", i), graph))
                return; // later faults would only follow from this one
    }

    bool readNode(const Json& value, const std::string& pointer, TensorGraph& graph)
    {
        const std::size_t before = m_diagnostics.size();
        ObjectReader reader(m_document, value, pointer, m_diagnostics);
        std::string name, operation;
        int segment = 0;
        reader.read("name", name, Presence::Required);
        reader.read("op", operation, Presence::Required);
        reader.read("segment", segment, 0, maxSegments - 1);
        const bool leaf = operation == "input" || operation == "received" || operation == "parameter";
        Shape shape;
        std::vector<int> operands;
        Attributes attributes;
        const int known = findOperation(operation);
        if (leaf) {
            shape = readLengths(reader, "shape", Presence::Required);
        } else if (known < 0 && !operation.empty()) {
            const auto names = operationNames();
            const std::string_view nearest = nearestName(operation, names);
            reader.fault("op", fmt::format("the operation \"{}\" is unknown", operation.substr(0, 64)),
                         nearest.empty() ? fmt::format("known: input, received, parameter, {}", joined(names, ", "))
                                         : fmt::format("did you mean \"{}\"?", nearest));
            return false;
        } else {
            readOperands(reader, graph, operands);
            if (known >= 0)
                for (const AttributeForm& form : operations()[known].attributes)
                    if (value.is_object() && value.contains(form.name))
                        reader.readRate(form.name, attributes[form.name]);
        }
        reader.finish();
        if (m_diagnostics.size() != before)
            return false;
        return located(pointer, [&] {
            if (operation == "input")
                graph.addInput(name, std::move(shape), segment);
            else if (operation == "received")
                graph.addReceived(name, std::move(shape), segment);
            else if (operation == "parameter")
                graph.addParameter(name, std::move(shape), segment);
            else
                graph.add(name, operation, std::move(operands), std::move(attributes), segment);
        });
    }

    void readOperands(ObjectReader& reader, const TensorGraph& graph, std::vector<int>& operands)
    {
        const Json* list = reader.array("of", Presence::Required);
        if (!list)
            return;
        if (list->empty() || list->size() > 8)
            reader.fault("of", fmt::format("{} operands", list->size()), "name the tensors that it works on");
        else
            for (const Json& operand : *list) {
                const std::string name = operand.is_string() ? operand.get<std::string>() : std::string();
                const int tensor = graph.find(name);
                if (tensor < 0) {
                    reader.fault("of",
                                 fmt::format("no node before this one is named {}", jsonText(operand).substr(0, 64)),
                                 "list a node before its use");
                    return;
                }
                operands.push_back(tensor);
            }
    }

    Cluster readCluster(ObjectReader& reader)
    {
        const bool named = m_document.value.is_object() && m_document.value.contains("cluster")
                           && m_document.value["cluster"].is_string();
        if (named) {
            std::string name;
            reader.read("cluster", name);
            Cluster cluster;
            located("/cluster", [&] { cluster = PresetLibrary().cluster(name); });
            return cluster;
        }
        const Json* object = reader.object("cluster", Presence::Required);
        return object ? pipewright::readCluster(m_document, *object, "/cluster", m_diagnostics) : Cluster{};
    }

    std::shared_ptr<const LocatedJson> m_source;
    const LocatedJson& m_document;
    Diagnostics m_diagnostics;
};

/// The whole model of a design, on all devices of its cluster.
GraphFile fromDesign(const std::shared_ptr<const LocatedJson>& document, std::string_view text)
{
    const Design design = designFromJson(text, document->source);
    if (!design.workload)
        throw Error(document->placeOf(""), "this design has costs but no model, so there are no tensors to share out",
                    "add \"model\"");
    if (!(design.workload->shape.parallel == Parallelism{}))
        throw Error(document->placeOf("/model/parallel"),
                    "the design's stages are shared out by stated degrees already",
                    "make the design without them to look for a sharding");
    GraphFile file{{}, design.cluster, document};
    try {
        file.graph = transformerGraph(design.workload->shape, design.workload->state);
    } catch (const Error& error) {
        throw Error(file.locate(error.diagnostics()));
    }
    return file;
}

} // namespace

Diagnostics GraphFile::locate(Diagnostics diagnostics) const
{
    for (Diagnostic& diagnostic : diagnostics) {
        if (!document || diagnostic.where.starts_with("--"))
            continue;
        std::string pointer = "/" + diagnostic.where;
        std::replace(pointer.begin(), pointer.end(), '.', '/');
        const std::string node = diagnostic.where;
        if (const int tensor = graph.find(node); tensor >= 0) {
            const bool listed = document->value.is_object() && document->value.contains("graph");
            pointer = listed ? fmt::format("/graph/{}", tensor) : "/model";
            diagnostic.what = fmt::format("{}: {}", node, diagnostic.what);
        }
        diagnostic.where = document->placeOf(pointer);
    }
    return diagnostics;
}

GraphFile graphFileFromJson(std::string_view text, const std::string& where)
{
    const auto document = std::make_shared<const LocatedJson>(parseLocatedJson(text, where));
    if (!document->value.is_object() || !document->value.contains("pipewright"))
        throw Error(document->placeOf(""), "this is no design and no graph of Pipewright",
                    "begin with { \"pipewright\": 1, \"graph\": …, \"cluster\": … }");
    if (document->value.contains("schedule") || document->value.contains("building_block"))
        return fromDesign(document, text);
    GraphFile file = GraphReader(document).read();
    file.document = document;
    return file;
}

GraphFile readGraphFile(const std::string& path)
{
    return graphFileFromJson(readTextFile(path), path);
}

GraphFile readStageFile(const std::string& path, int stage)
{
    const Design design = readDesign(path);
    if (!design.workload)
        throw Error("--stage", "this design has costs but no model", "add \"model\"");
    if (stage < 0 || stage >= design.schedule.stages())
        throw Error("--stage", fmt::format("there is no stage {}", stage),
                    fmt::format("stages are numbered 0 to {}", design.schedule.stages() - 1));
    const auto at = static_cast<std::size_t>(stage);
    const auto device = static_cast<std::size_t>(design.schedule.deviceOfStage[at]);
    if (device >= design.cluster.devices.size() || !design.cluster.devices[device].group)
        throw Error("--stage", fmt::format("device {}, which holds stage {}, is no group", device, stage),
                    "give the device a \"group\" of devices in the design's cluster");
    const auto first = std::accumulate(design.layersPerStage.begin(),
                                       design.layersPerStage.begin() + static_cast<std::ptrdiff_t>(at), 0);
    return {stageGraph(design.workload->shape, design.workload->state,
                       sharding::stageRange(*design.workload, first, design.layersPerStage[at])),
            *design.cluster.devices[device].group,
            {}};
}

std::string graphFileToJson(const GraphFile& file)
{
    nlohmann::ordered_json json{{"pipewright", graphVersion}};
    if (!file.graph.name.empty())
        json["name"] = file.graph.name;
    json["graph"] = nlohmann::ordered_json::array();
    for (const Node& node : file.graph.nodes()) {
        nlohmann::ordered_json entry{{"name", node.name}};
        if (node.leaf != Leaf::None) {
            entry["op"] = node.leaf == Leaf::Input ? "input" : node.leaf == Leaf::Received ? "received" : "parameter";
            entry["shape"] = node.shape;
        } else {
            entry["op"] = operations()[node.operation].name;
            for (const int operand : node.operands)
                entry["of"].push_back(file.graph.node(operand).name);
            for (const auto& [name, value] : node.attributes)
                entry[name] = plainNumber(value);
        }
        if (node.segment != 0)
            entry["segment"] = node.segment;
        json["graph"].push_back(std::move(entry));
    }
    json["bytes_per_element"] = file.graph.bytesPerElement;
    json["state_bytes_per_parameter"] = file.graph.stateBytesPerParameter;
    json["cluster"] = clusterToJson(file.cluster);
    return prettyJson(json);
}

} // namespace pipewright
