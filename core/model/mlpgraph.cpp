// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/mlpgraph.h"

#include <fmt/format.h>

namespace pipewright {

TensorGraph mlpGraph(const MlpShape& shape)
{
    if (shape.widths.size() < 2)
        throw Error("mlp.widths", fmt::format("{} widths", shape.widths.size()),
                    "give the width of the input and of every layer: [4, 8, 4]");
    TensorGraph graph;
    graph.name = "mlp";
    int x = graph.addInput("x", {shape.batch, shape.widths.front()});
    for (std::size_t i = 1; i < shape.widths.size(); ++i) {
        std::vector<int> operands{x, graph.addParameter(fmt::format("w{}", i), {shape.widths[i], shape.widths[i - 1]})};
        if (shape.bias)
            operands.push_back(graph.addParameter(fmt::format("b{}", i), {shape.widths[i]}));
        x = graph.add(fmt::format("y{}", i), "linear", std::move(operands));
        if (!shape.activation.empty() && i + 1 < shape.widths.size())
            x = graph.add(fmt::format("a{}", i), shape.activation, {x});
    }
    graph.add("loss", "sum", {x});
    return graph;
}

} // namespace pipewright
