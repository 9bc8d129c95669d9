// SPDX-License-Identifier: GPL-3.0-or-later
// Walks the flat layout of executor/training tensor by tensor and maps each to its name in the graph. O(parameters).
#include "executor/sharding/wholetensors.h"

#include "core/base/diagnostic.h"
#include "core/sharding/modelgraph.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace pipewright::sharding {

namespace {

/// Values of a parameter that are contiguous in a tensor of the graph, from `first` on.
struct Run {
    std::string tensor;
    std::size_t first = 0, count = 0;
};

/// The runs of one parameter, in order. The only table from parameters to tensors.
class RunsOf {
public:
    RunsOf(const ModelShape& shape, const Parameter& parameter) : m_shape(shape), m_parameter(parameter)
    {
        const std::string& name = parameter.name;
        const std::size_t slash = name.find('/'), dot = name.rfind('.');
        const std::string layer = name.substr(0, slash), part = name.substr(slash + 1, dot - slash - 1);
        m_kind = name.substr(dot + 1);
        if (layer == "embedding" || layer == "head")
            end(layer, part);
        else if (m_kind == "gamma" || m_kind == "beta")
            norm(layer.substr(std::string("layer ").size()) + ".", part);
        else
            block(layer.substr(std::string("layer ").size()) + ".", part);
        if (m_next != parameter.count())
            throw Error(name, "groups know no tensor of this parameter",
                        "this is a fault of the program: please report it with the design");
    }
    std::vector<Run> take() { return std::move(m_runs); }

private:
    std::size_t width() const { return static_cast<std::size_t>(m_parameter.rows == 1 ? 1 : m_parameter.columns); }
    std::int64_t rows() const { return m_parameter.rows == 1 ? m_parameter.columns : m_parameter.rows; }

    void add(std::string tensor, std::int64_t count, std::int64_t first = 0)
    {
        m_runs.push_back(
            {std::move(tensor), static_cast<std::size_t>(first) * width(), static_cast<std::size_t>(count) * width()});
        m_next += m_runs.back().count;
    }
    void whole(std::string tensor) { add(std::move(tensor), rows()); }

    void end(const std::string& layer, const std::string& part)
    {
        if (part == "table")
            whole(embeddingName);
        else if (part == "positions")
            whole("positions.table");
        else if (part == "projection")
            whole(hasTiedHead(m_shape) ? embeddingName : headName);
        else if (layer == "head" && part == "norm")
            whole(m_kind == "gamma" ? "final.norm.gain" : "final.norm.bias");
    }

    void norm(const std::string& layer, const std::string& part)
    {
        static const std::pair<const char*, const char*> norms[] = {
            {"ln1", "norm1"},        {"ln2", "norm2"},        {"attentionNorm", "attention_norm"},
            {"mlpNorm", "mlp_norm"}, {"keyNorm", "key_norm"}, {"queryNorm", "query_norm"}};
        for (const auto& [ours, theirs] : norms)
            if (part == ours)
                whole(layer + theirs + (m_kind == "gamma" ? ".gain" : ".bias"));
    }

    void block(const std::string& layer, const std::string& part)
    {
        const auto name = [&](const char* of) { return layer + of + "." + m_kind; };
        if (part == "qkv") {
            const std::int64_t keys = m_shape.keyValueHeads * m_shape.headSize;
            add(name("query"), m_shape.heads * m_shape.headSize);
            add(name("key"), keys);
            add(name("value"), keys);
        } else if (part == "projection" || part == "router") {
            whole(name(part.c_str()));
        } else if (part == "fc1" || part == "shared.fc1") {
            const bool shared = part == "shared.fc1", gated = shared || m_shape.gatedMlp;
            if (gated)
                add(name(shared ? "shared.gate" : "mlp.gate"), rows() / 2);
            add(name(shared ? "shared.up" : "mlp.up"), gated ? rows() / 2 : rows());
        } else if (part == "fc2" || part == "shared.fc2") {
            whole(name(part == "fc2" ? "mlp.down" : "shared.down"));
        } else if (part == "experts.fc1") { // here expert by expert, gate before up; in the graph one tensor each
            for (std::int64_t e = 0; e < m_shape.experts; ++e)
                for (const char* factor : {"experts.gate", "experts.up"})
                    add(name(factor), m_shape.expertFfn, e * m_shape.expertFfn);
        } else if (part == "experts.fc2") {
            whole(name("experts.down"));
        }
    }

    const ModelShape& m_shape;
    const Parameter& m_parameter;
    std::string m_kind;
    std::vector<Run> m_runs;
    std::size_t m_next = 0;
};

ParameterLayout layoutOf(const Workload& workload)
{
    return {workload, 0, static_cast<int>(workload.layers.size())};
}

} // namespace

bool hasTiedHead(const ModelShape& shape)
{
    return shape.tiedHead && shape.architecture != Architecture::Classifier;
}

WholeTensors wholeTensors(const Workload& workload, const ParameterLayout& layout, std::span<const float> flat)
{
    WholeTensors tensors;
    const TensorGraph graph = transformerGraph(workload.shape, workload.state);
    for (const Node& node : graph.nodes())
        if (node.leaf == Leaf::Parameter)
            tensors.emplace(node.name, HostTensor(node.shape));
    for (const Parameter& parameter : layout.parameters()) {
        if (&parameter == layout.headMatrix())
            continue;
        std::span<const float> from = parameter.in(flat);
        for (const Run& run : RunsOf(workload.shape, parameter).take()) {
            std::copy_n(from.begin(), run.count,
                        tensors.at(run.tensor).data.begin() + static_cast<std::ptrdiff_t>(run.first));
            from = from.subspan(run.count);
        }
    }
    return tensors;
}

WholeTensors initialParameters(const Workload& workload, std::uint64_t seed, const TrainingWork::Start& start)
{
    const ParameterLayout layout = layoutOf(workload);
    std::vector<float> flat(layout.count());
    if (start)
        start(layout, flat);
    else
        layout.initialise(flat, seed);
    return wholeTensors(workload, layout, flat);
}

std::vector<float> inLayout(const WholeTensors& tensors, const ModelShape& shape, const ParameterLayout& layout)
{
    std::vector<float> flat;
    flat.reserve(layout.count());
    for (const Parameter& parameter : layout.parameters())
        for (const Run& run : RunsOf(shape, parameter).take()) {
            const auto from = tensors.at(run.tensor).data.begin() + static_cast<std::ptrdiff_t>(run.first);
            flat.insert(flat.end(), from, from + static_cast<std::ptrdiff_t>(run.count));
        }
    return flat;
}

} // namespace pipewright::sharding
