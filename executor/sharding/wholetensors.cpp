// SPDX-License-Identifier: GPL-3.0-or-later
// Walks the flat layout of executor/training tensor by tensor; the graph's nodes say which part of a layer each is.
// O(parameters).
#include "executor/sharding/wholetensors.h"

#include "core/base/diagnostic.h"
#include "core/model/modelgraph.h"
#include "core/model/transformer.h"

#include <algorithm>
#include <cstdint>

namespace pipewright::sharding {

namespace {

/// Values of a parameter that are contiguous in a tensor of the graph, from `first` on.
struct Run {
    const std::string* tensor = nullptr;
    std::size_t first = 0, count = 0;
};

/// Which tensors of a model's graph each parameter consists of. Products that are computed as one have one parameter,
/// with the rows of one after the rows of the other; those of experts expert by expert.
class TensorsOfParameters {
public:
    explicit TensorsOfParameters(const ModelShape& shape)
        : m_graph(stageGraph(shape, {}, {0, shape.layers, true, true})), m_tied(hasTiedHead(shape))
    {
        for (const Node& node : m_graph.nodes())
            if (node.leaf == Leaf::Parameter)
                m_nodes[layerOf(node.name) + "/" + node.part].push_back(&node);
    }

    const TensorGraph& graph() const { return m_graph; }

    std::vector<Run> runsOf(const Parameter& parameter) const
    {
        const bool copied = m_tied && parameter.name == "head/projection.weight"; // of the embedding's table
        std::vector<Run> runs;
        std::size_t all = 0;
        if (const auto found = m_nodes.find(copied ? "embedding/table.weight" : parameter.name);
            found != m_nodes.end()) {
            const std::int64_t experts =
                found->second.front()->part.starts_with("experts.") ? found->second.front()->shape.front() : 1;
            for (std::int64_t e = 0; e < experts; ++e)
                for (const Node* node : found->second) {
                    const auto count = static_cast<std::size_t>(node->count() / experts);
                    runs.push_back({&node->name, static_cast<std::size_t>(e) * count, count});
                    all += count;
                }
        }
        if (all != parameter.count())
            throw Error(parameter.name, "groups know no tensor of this parameter",
                        "this is a fault of the program: please report it with the design");
        return runs;
    }

private:
    static std::string layerOf(const std::string& name)
    {
        if (const std::size_t digits = name.find_first_not_of("0123456789"); digits > 0)
            return "layer " + name.substr(0, digits);
        return name.starts_with("final.") || name == headName ? "head" : "embedding";
    }

    TensorGraph m_graph;
    bool m_tied;
    std::map<std::string, std::vector<const Node*>> m_nodes;
};

ParameterLayout layoutOf(const Workload& workload)
{
    return {workload, 0, static_cast<int>(workload.layers.size())};
}

} // namespace

WholeTensors wholeTensors(const Workload& workload, const ParameterLayout& layout, std::span<const float> flat)
{
    WholeTensors tensors;
    const TensorsOfParameters parts(workload.shape);
    for (const Node& node : parts.graph().nodes())
        if (node.leaf == Leaf::Parameter)
            tensors.emplace(node.name, HostTensor(node.shape));
    for (const Parameter& parameter : layout.parameters()) {
        if (&parameter == layout.headMatrix())
            continue;
        std::span<const float> from = parameter.in(flat);
        for (const Run& run : parts.runsOf(parameter)) {
            std::copy_n(from.begin(), run.count,
                        tensors.at(*run.tensor).data.begin() + static_cast<std::ptrdiff_t>(run.first));
            from = from.subspan(run.count);
        }
    }
    return tensors;
}

WholeTensors initialParameters(const Workload& workload, std::uint64_t seed, const TrainedWork::Start& start)
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
    const TensorsOfParameters parts(shape);
    std::vector<float> flat;
    flat.reserve(layout.count());
    for (const Parameter& parameter : layout.parameters())
        for (const Run& run : parts.runsOf(parameter)) {
            const auto from = tensors.at(*run.tensor).data.begin() + static_cast<std::ptrdiff_t>(run.first);
            flat.insert(flat.end(), from, from + static_cast<std::ptrdiff_t>(run.count));
        }
    return flat;
}

} // namespace pipewright::sharding
