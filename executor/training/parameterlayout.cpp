// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/parameterlayout.h"

#include "core/base/diagnostic.h"
#include "executor/training/counterrandom.h"

#include <cassert>
#include <cmath>

namespace pipewright {
namespace {
constexpr const char* embeddingMatrixName = "embedding/table.weight";
constexpr const char* headMatrixName = "head/projection.weight";
} // namespace

ParameterLayout::ParameterLayout(const Workload& workload, int first, int last)
{
    using enum Parameter::Start;
    const ModelShape& shape = workload.shape;
    const std::int64_t hidden = shape.hidden;
    const double deviation = 0.02, residualDeviation = 0.02 / std::sqrt(2.0 * shape.layers);
    for (const Layer& layer : workload.layers)
        m_layerNames.push_back(layer.name);
    for (int index = first; index < last; ++index) {
        const Layer& layer = workload.layers[std::size_t(index)];
        const std::size_t begin = m_count;
        switch (layer.kind) {
        case LayerKind::Embedding:
            if (shape.architecture == Architecture::Classifier) {
                add(layer, "table.weight", shape.features, hidden, Normal, deviation);
                break;
            }
            add(layer, "table.weight", shape.vocabulary, hidden, Normal, deviation);
            add(layer, "positions.weight", shape.sequence, hidden, Normal, deviation);
            break;
        case LayerKind::Transformer:
            add(layer, "ln1.gamma", 1, hidden, One);
            add(layer, "ln1.beta", 1, hidden, Zero);
            add(layer, "qkv.weight", 3 * hidden, hidden, Normal, deviation);
            add(layer, "qkv.bias", 1, 3 * hidden, Zero);
            add(layer, "projection.weight", hidden, hidden, Normal, residualDeviation);
            add(layer, "projection.bias", 1, hidden, Zero);
            [[fallthrough]];
        case LayerKind::Mlp:
            add(layer, "ln2.gamma", 1, hidden, One);
            add(layer, "ln2.beta", 1, hidden, Zero);
            add(layer, "fc1.weight", shape.ffn, hidden, Normal, deviation);
            add(layer, "fc1.bias", 1, shape.ffn, Zero);
            add(layer, "fc2.weight", hidden, shape.ffn, Normal, residualDeviation);
            add(layer, "fc2.bias", 1, hidden, Zero);
            break;
        case LayerKind::Head:
            add(layer, "norm.gamma", 1, hidden, One);
            add(layer, "norm.beta", 1, hidden, Zero);
            add(layer, "projection.weight", shape.vocabulary, hidden, Normal, deviation);
            if (layer.sharedParameters > 0)
                m_parameters.back().drawnAs = embeddingMatrixName;
            break;
        case LayerKind::Other:
            throw Error(layer.name, "this layer has no mathematics", "run a model made of its dimensions");
        }
        assert(m_count - begin == std::size_t(layer.parameters));
        (void)begin;
    }
}

void ParameterLayout::add(const Layer& layer, const char* name, std::int64_t rows, std::int64_t columns,
                          Parameter::Start start, double deviation)
{
    const std::string full = layer.name + "/" + name;
    m_parameters.push_back({full, int(rows), int(columns), m_count, start, deviation, full});
    m_count += m_parameters.back().count();
}

const Parameter* ParameterLayout::find(std::string_view name) const
{
    for (const Parameter& parameter : m_parameters)
        if (parameter.name == name)
            return &parameter;
    return nullptr;
}

const Parameter& ParameterLayout::at(int layer, std::string_view name) const
{
    const std::string full = m_layerNames.at(std::size_t(layer)) + "/" + std::string(name);
    if (const Parameter* parameter = find(full))
        return *parameter;
    throw Error(full, "the stage has no such parameter");
}

const Parameter* ParameterLayout::embeddingMatrix() const
{
    return find(embeddingMatrixName);
}
const Parameter* ParameterLayout::headMatrix() const
{
    const Parameter* matrix = find(headMatrixName);
    return matrix && matrix->drawnAs == embeddingMatrixName ? matrix : nullptr; // a head of its own is tied to nothing
}

void ParameterLayout::initialise(std::span<float> parameters, std::uint64_t seed) const
{
    assert(parameters.size() == m_count);
    for (const Parameter& parameter : m_parameters) {
        const std::span<float> values = parameter.in(parameters);
        if (parameter.start != Parameter::Start::Normal) {
            std::fill(values.begin(), values.end(), parameter.start == Parameter::Start::One ? 1.0f : 0.0f);
            continue;
        }
        const CounterRandom random(seed, parameter.drawnAs);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = float(parameter.deviation * random.normal(i));
    }
}

void sumTiedGradients(const kernels::Operations& operations, const ParameterLayout& layout, std::span<float> gradients)
{
    const Parameter* root = layout.embeddingMatrix();
    const Parameter* other = layout.headMatrix();
    if (!root || !other)
        return;
    operations.run(kernels::Add{root->in(gradients), other->in(gradients)});
    operations.copy(root->in(gradients), other->in(gradients));
}

} // namespace pipewright
