// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/stage/parameterlayout.h"

#include "core/base/diagnostic.h"
#include "executor/stage/counterrandom.h"

#include <cassert>
#include <cmath>

namespace pipewright {
namespace {
constexpr const char* embeddingMatrixName = "embedding/table.weight";
constexpr const char* headMatrixName = "head/projection.weight";
} // namespace

ParameterLayout::ParameterLayout(const Workload& workload, int first, int last)
{
    const double deviation = 0.02, residualDeviation = 0.02 / std::sqrt(2.0 * workload.shape.layers);
    for (const Layer& layer : workload.layers)
        m_layerNames.push_back(layer.name);
    for (int index = first; index < last; ++index) {
        const Layer& layer = workload.layers[std::size_t(index)];
        if (layer.parameterTensors.empty())
            throw Error(layer.name, "this layer has no mathematics", "run a model made of its dimensions");
        const std::size_t begin = m_count;
        for (const LayerParameter& of : layer.parameterTensors) {
            const std::string name = layer.name + "/" + of.name;
            Parameter parameter{name, int(of.rows), int(of.columns), m_count, Parameter::Start::Zero, 0, name};
            switch (of.start) {
            case LayerParameter::Start::Zero: break;
            case LayerParameter::Start::One: parameter.start = Parameter::Start::One; break;
            case LayerParameter::Start::Normal:
                parameter.start = Parameter::Start::Normal;
                parameter.deviation = deviation;
                break;
            case LayerParameter::Start::Residual:
                parameter.start = Parameter::Start::Normal;
                parameter.deviation = residualDeviation;
                break;
            }
            if (of.name == "router.correction") {
                parameter.isCorrection = true;
                parameter.correctionRate = workload.shape.routerBiasRate;
            }
            if (name == headMatrixName && layer.sharedParameters > 0)
                parameter.drawnAs = embeddingMatrixName;
            m_count += parameter.count();
            m_parameters.push_back(std::move(parameter));
        }
        assert(m_count - begin == std::size_t(layer.parameters));
        (void)begin;
    }
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
    if (const Parameter* parameter = findAt(layer, name))
        return *parameter;
    throw Error(m_layerNames.at(std::size_t(layer)) + "/" + std::string(name), "the stage has no such parameter");
}

const Parameter* ParameterLayout::findAt(int layer, std::string_view name) const
{
    return find(m_layerNames.at(std::size_t(layer)) + "/" + std::string(name));
}

const Parameter* ParameterLayout::embeddingMatrix() const
{
    return find(embeddingMatrixName);
}
const Parameter* ParameterLayout::headMatrix() const
{
    const Parameter* matrix = find(headMatrixName);
    return matrix && matrix->drawnAs == embeddingMatrixName ? matrix : nullptr; // an untied head has no such matrix
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

} // namespace pipewright
