// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/owntensors.h"

#include "core/model/tensorgraph.h"

namespace pipewright {

namespace {

constexpr int exact = 4; ///< bytes of fp32 values and indices, whatever the model's type

} // namespace

// Of every query and head: its probabilities, or the one number that flash attention makes them again from.
std::vector<SavedTensor> attentionCore(const TensorGraph& graph, const Node& node)
{
    const auto rows = node.shape[0] * node.shape[1];
    const auto heads = static_cast<std::int64_t>(node.attribute("heads"));
    std::vector<SavedTensor> own;
    const auto add = [&own](const char* name, std::int64_t elements, int width) {
        own.push_back({name, elements, width, Lifetime::UntilInputGrad, true});
    };
    if (node.attribute("streamed") > 0)
        add("probabilities", heads * rows, exact);
    if (node.attribute("stored") == 0)
        return own;
    const std::int64_t scores = heads * rows * keysOf(graph, node);
    add("probabilities", scores, graph.bytesPerElement);
    if (node.attribute("dropout") > 0) {
        add("mask", scores, 1);
        add("droppedProbabilities", scores, graph.bytesPerElement);
    }
    return own;
}

std::vector<SavedTensor> cappedLogits(const TensorGraph&, const Node& node)
{
    return {{"logits", node.count(), exact, Lifetime::UntilInputGrad}};
}

std::vector<SavedTensor> dropoutMask(const TensorGraph&, const Node& node)
{
    return {{"mask", node.count(), 1, Lifetime::UntilInputGrad}};
}

std::vector<SavedTensor> lossProbabilities(const TensorGraph& graph, const Node& node)
{
    return {{"probabilities", graph.node(node.operands[0]).count(), exact, Lifetime::UntilInputGrad}};
}

// Per copy of a token its expert, its row and its weight; per expert the first row.
std::vector<SavedTensor> routing(const TensorGraph& graph, const Node& node)
{
    const Node& logits = graph.node(node.operands[0]);
    const std::int64_t experts = logits.shape.back(), copies = copiesOf(node) / node.tokensOver;
    return {{"probabilities", logits.count() / node.tokensOver, exact, Lifetime::UntilInputGrad},
            {"choice", copies, exact, Lifetime::UntilInputGrad},
            {"row", copies, exact, Lifetime::UntilInputGrad},
            {"weight", copies, exact, Lifetime::UntilInputGrad},
            {"begin", experts + 1, exact, Lifetime::UntilWeightGrad}};
}

} // namespace pipewright
