// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/stage/layerplan.h"

#include "core/base/diagnostic.h"

#include <algorithm>

namespace pipewright {

namespace {

const Operation& rowOf(const Node& node)
{
    return operations()[std::size_t(node.operation)];
}

/// Operations that change the stream where it is.
bool worksOnStream(std::string_view operation)
{
    return operation == "positions" || operation == "segments" || operation == "scale" || operation == "layer_norm"
           || operation == "rms_norm";
}

} // namespace

LayerPlan::LayerPlan(TensorGraph graph, int layer, bool plainAttention, const StageLayout& layout,
                     const ParameterLayout& parameters)
    : m_graph(std::move(graph)), m_layer(layer), m_plainAttention(plainAttention), m_layout(&layout),
      m_parameters(&parameters), m_readers(m_graph.consumers()), m_onStream(std::size_t(m_graph.size())),
      m_addsToStream(std::size_t(m_graph.size()))
{
    Layer described;
    m_tensors = describeLayer(m_graph, 1, described);
    m_isEmbedding = node(0).leaf != Leaf::Received;
    std::vector<bool> seen(std::size_t(m_graph.size()));
    findOrder(m_graph.size() - 1, seen);
    findStream();
}

std::string_view LayerPlan::operation(int tensor) const
{
    return node(tensor).leaf == Leaf::None ? rowOf(node(tensor)).name : std::string_view();
}

bool LayerPlan::isActivation(int tensor) const
{
    return node(tensor).leaf == Leaf::None && node(tensor).operands.size() == 1 && rowOf(node(tensor)).isElementwise();
}

bool LayerPlan::isNorm(int tensor) const
{
    const std::string_view name = operation(tensor);
    return name == "layer_norm" || name == "rms_norm" || name == "head_norm";
}

void LayerPlan::findOrder(int tensor, std::vector<bool>& seen)
{
    if (seen[std::size_t(tensor)] || node(tensor).leaf != Leaf::None)
        return;
    seen[std::size_t(tensor)] = true;
    const std::vector<int>& operands = node(tensor).operands;
    for (auto operand = operands.rbegin(); operand != operands.rend(); ++operand)
        findOrder(*operand, seen);
    m_order.push_back(tensor);
}

int LayerPlan::reader(int tensor) const
{
    const std::vector<int>& readers = m_readers[std::size_t(tensor)];
    return readers.size() == 1 ? readers.front() : -1;
}

// From the values that leave back to those that arrive.
void LayerPlan::findStream()
{
    m_onStream[0] = !m_isEmbedding;
    if (isHead())
        return;
    for (int t = operand(size() - 1, 0);;) {
        m_onStream[std::size_t(t)] = true;
        if (operation(t) == "add") {
            if (reader(operand(t, 1)) != t)
                fault(operand(t, 1), "is read by others too, and cannot be added where it is made");
            m_addsToStream[std::size_t(operand(t, 1))] = true;
            t = operand(t, 0);
        } else if (worksOnStream(operation(t))) {
            t = operand(t, 0);
        } else {
            break;
        }
    }
    for (int t = size() - 1; t >= 0; --t)
        if (m_addsToStream[std::size_t(t)] && operation(t) == "add")
            for (const int operand : node(t).operands)
                m_addsToStream[std::size_t(operand)] = true;
}

void LayerPlan::fault(int tensor, const char* what) const
{
    throw Error(node(tensor).name, what, "this is a fault of the program: please report it with the design");
}

std::optional<Slice> LayerPlan::kept(int tensor) const
{
    const auto found = m_tensors.values.find(tensor);
    return found == m_tensors.values.end() ? std::nullopt : std::optional(m_layout->slice(m_layer, found->second));
}

Place LayerPlan::own(int tensor, std::string_view name, std::int64_t) const
{
    return {.slice = m_layout->slice(m_layer, node(tensor).part + "." + std::string(name))};
}

// What keys are made of lies where their queries come afterwards: F has no scratch.
Slice LayerPlan::borrowed(int tensor) const
{
    const int keys = reader(tensor), attention = reader(keys);
    if (attention < 0 || operand(attention, 1) != keys)
        fault(tensor, "has no place in the forward");
    Slice place = value(operand(attention, 0)).slice;
    const std::int64_t before = operand(keys, 0) == tensor ? 0 : elements(operand(keys, 0));
    if (before + elements(tensor) > place.elements)
        fault(tensor, "is larger than the queries");
    place.offset += before * Bytes(sizeof(float));
    place.elements = elements(tensor);
    return place;
}

Place LayerPlan::value(int tensor) const
{
    if (isOnStream(tensor) || addsToStream(tensor))
        return {.isStream = true};
    if (const auto slice = kept(tensor))
        return {.slice = *slice};
    const int by = reader(tensor);
    const std::string_view reads = by < 0 ? std::string_view() : operation(by);
    if (reads == "route" || reads == "cross_entropy")
        return own(by, "probabilities", elements(tensor));
    if (reads == "soft_cap" || reads == "first_row")
        return value(by);
    if (reads == "join_keys")
        return {.slice = borrowed(tensor)};
    fault(tensor, "has no place in the forward");
}

Place LayerPlan::read(int tensor) const
{
    const auto slice = kept(tensor);
    return slice ? Place{.slice = *slice} : value(tensor);
}

int LayerPlan::route(int tensor) const
{
    while (operation(tensor) != "dispatch" && operation(tensor) != "combine")
        tensor = operand(tensor, 0);
    return operand(tensor, 0);
}

bool LayerPlan::needsGradient(int tensor) const
{
    switch (node(tensor).leaf) {
    case Leaf::None:
    case Leaf::Received: return true;
    case Leaf::Input:
    case Leaf::Parameter: break;
    }
    return false;
}

std::optional<Slice> LayerPlan::keptGradient(int tensor) const
{
    const auto found = m_tensors.gradients.find(tensor);
    if (found == m_tensors.gradients.end())
        return std::nullopt;
    Slice slice = m_layout->slice(m_layer, found->second.name);
    if (isPartOfPlain(tensor) || m_isEmbedding)
        return slice; // of all three, or of the values that leave
    slice.offset += found->second.first * Bytes(sizeof(float));
    slice.elements = elements(tensor);
    return slice;
}

Slice LayerPlan::embeddingGradient() const
{
    return m_layout->slice(m_layer, m_tensors.gradients.begin()->second.name);
}

Place LayerPlan::workspace(std::string_view name, std::int64_t elements) const
{
    Slice slice = m_layout->slice(m_layer, name);
    slice.elements = elements;
    return {.slice = slice};
}

Place LayerPlan::gradient(int tensor) const
{
    if (const auto slice = keptGradient(tensor))
        return {.slice = *slice};
    if (isOnStream(tensor) || addsToStream(tensor))
        return {.isStream = true};
    const std::string_view name = operation(tensor);
    if (name == "soft_cap" || rowOf(node(tensor)).isElementwise()
        || (isNorm(tensor) && keptGradient(operand(tensor, 0)))) {
        if (reader(operand(tensor, 0)) != tensor)
            fault(operand(tensor, 0), "is read by others too, and its gradient cannot be made in place");
        return gradient(operand(tensor, 0));
    }
    if (const std::string_view own = rowOf(node(tensor)).resultGrad; !own.empty())
        return workspace(own, elements(tensor));
    if (name == "dispatch")
        return workspace("d.experts", elements(tensor));
    // They are never needed at once.
    if (isNorm(tensor) || rowOf(node(tensor)).work == Work::Attention || name == "first_row")
        return workspace("d.ln", elements(tensor));
    fault(tensor, "has no place for its gradient");
}

ParameterPlace LayerPlan::parameter(int tensor) const
{
    const Node& of = node(tensor);
    const Parameter& whole = m_parameters->at(m_layer, of.part);
    // Weights of experts lie expert by expert, those of one part of the layer side by side.
    const bool ofExperts = of.part.starts_with("experts.");
    const std::int64_t experts = ofExperts ? of.shape.front() : 1;
    std::size_t first = 0;
    for (int t = 0; t < tensor; ++t)
        if (node(t).leaf == Leaf::Parameter && node(t).part == of.part)
            first += std::size_t(node(t).count() / experts);
    return {whole.offset + first, ofExperts ? whole.count() - first : std::size_t(of.count()),
            std::int64_t(whole.count()) / experts};
}

bool LayerPlan::isPartOfPlain(int tensor) const
{
    const int by = reader(tensor);
    return m_plainAttention && by >= 0 && operation(by) == "attention";
}

bool LayerPlan::isFused(int activation) const
{
    if (!fuses || operation(activation) != "gelu")
        return false;
    const int made = operand(activation, 0), by = reader(activation);
    return reader(made) == activation && operation(made) == "linear" && by >= 0 && operation(by) == "linear";
}

bool LayerPlan::isBehindClassToken(int tensor) const
{
    const int by = reader(tensor);
    return by >= 0 && operation(by) == "class_token";
}

int LayerPlan::firstRowOf(int norm) const
{
    const int by = reader(norm);
    return by >= 0 && operation(by) == "first_row" ? by : -1;
}

} // namespace pipewright
