// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/stagemaths.h"

#include <cassert>

namespace pipewright {

StageMaths::StageMaths(const Workload& workload, int first, int last, int microbatches)
    : m_layout(workload, first, last), m_parameters(workload, first, last),
      m_activationElements(std::size_t(workload.shape.tokens() * workload.shape.hidden))
{
    assert(microbatches > 0);
    const ModelShape& shape = workload.shape;
    const float lossScale = 1.0f / (float(shape.tokens()) * float(microbatches));
    for (int index = first; index < last; ++index) {
        switch (workload.layers[std::size_t(index)].kind) {
        case LayerKind::Embedding:
            if (shape.architecture == Architecture::Classifier)
                m_features.emplace(shape, index, m_layout, m_parameters);
            else
                m_embedding.emplace(shape, index, m_layout, m_parameters);
            break;
        case LayerKind::Mlp: m_mlps.emplace_back(shape, index, m_layout, m_parameters); break;
        case LayerKind::Head: m_head.emplace(shape, index, m_layout, m_parameters, lossScale); break;
        default: m_transformers.emplace_back(shape, index, m_layout, m_parameters); break;
        }
    }
}

void StageMaths::forward(std::span<const float> parameters, const StageInput& input, const StageMemory& memory,
                         std::span<float> output) const
{
    assert(parameters.size() == m_parameters.count());
    const std::span<float> stream = m_head ? m_head->stream(memory) : output;
    if (m_embedding)
        m_embedding->forward(parameters, input.tokens, memory, stream);
    else if (m_features)
        m_features->forward(parameters, input.tokens, memory, stream);
    else
        memory.operations->copy(input.activation, stream);
    for (const TransformerLayer& layer : m_transformers)
        layer.forward(parameters, memory, stream);
    for (const MlpLayer& layer : m_mlps)
        layer.forward(parameters, memory, stream);
    if (m_head)
        m_head->forward(parameters, input.targets, memory, input.loss);
}

void StageMaths::inputGrad(std::span<const float> parameters, const StageMemory& memory,
                           std::span<const float> outputGrad, std::span<float> inputGrad,
                           std::span<float> gradients) const
{
    assert(parameters.size() == m_parameters.count() && gradients.size() == m_parameters.count());
    const std::span<float> stream = m_embedding ? m_embedding->outputGrad(memory)
                                    : m_features ? m_features->outputGrad(memory)
                                                 : inputGrad;
    if (m_head)
        m_head->inputGrad(parameters, memory, stream, gradients);
    else
        memory.operations->copy(outputGrad, stream);
    for (auto layer = m_mlps.rbegin(); layer != m_mlps.rend(); ++layer)
        layer->inputGrad(parameters, memory, stream, gradients);
    for (auto layer = m_transformers.rbegin(); layer != m_transformers.rend(); ++layer)
        layer->inputGrad(parameters, memory, stream, gradients);
}

void StageMaths::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    assert(gradients.size() == m_parameters.count());
    if (m_embedding)
        m_embedding->weightGrad(memory, gradients);
    if (m_features)
        m_features->weightGrad(memory, gradients);
    for (const TransformerLayer& layer : m_transformers)
        layer.weightGrad(memory, gradients);
    for (const MlpLayer& layer : m_mlps)
        layer.weightGrad(memory, gradients);
    if (m_head)
        m_head->weightGrad(memory, gradients);
}

void StageMaths::backward(std::span<const float> parameters, const StageMemory& memory,
                          std::span<const float> outputGrad, std::span<float> inputGrad,
                          std::span<float> gradients) const
{
    this->inputGrad(parameters, memory, outputGrad, inputGrad, gradients);
    weightGrad(memory, gradients);
}

} // namespace pipewright
