// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/stagemaths.h"

#include "core/base/diagnostic.h"

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
        case LayerKind::Transformer:
            m_blocks.emplace_back(TransformerLayer(shape, index, m_layout, m_parameters));
            break;
        case LayerKind::Mlp: m_blocks.emplace_back(MlpLayer(shape, index, m_layout, m_parameters)); break;
        case LayerKind::Head: m_head.emplace(shape, index, m_layout, m_parameters, lossScale); break;
        case LayerKind::Other:
            throw Error(workload.layers[std::size_t(index)].name, "this layer has no mathematics",
                        "run a model made of its dimensions");
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
    for (const auto& block : m_blocks)
        std::visit([&](const auto& layer) { layer.forward(parameters, memory, stream); }, block);
    if (m_head)
        m_head->forward(parameters, input.targets, memory, input.loss);
}

void StageMaths::inputGrad(std::span<const float> parameters, const StageMemory& memory,
                           std::span<const float> outputGrad, std::span<float> inputGrad,
                           std::span<float> gradients) const
{
    assert(parameters.size() == m_parameters.count() && gradients.size() == m_parameters.count());
    const std::span<float> stream = m_embedding  ? m_embedding->outputGrad(memory)
                                    : m_features ? m_features->outputGrad(memory)
                                                 : inputGrad;
    if (m_head)
        m_head->inputGrad(parameters, memory, stream, gradients);
    else
        memory.operations->copy(outputGrad, stream);
    for (auto block = m_blocks.rbegin(); block != m_blocks.rend(); ++block)
        std::visit([&](const auto& layer) { layer.inputGrad(parameters, memory, stream, gradients); }, *block);
}

void StageMaths::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    assert(gradients.size() == m_parameters.count());
    if (m_embedding)
        m_embedding->weightGrad(memory, gradients);
    if (m_features)
        m_features->weightGrad(memory, gradients);
    for (const auto& block : m_blocks)
        std::visit([&](const auto& layer) { layer.weightGrad(memory, gradients); }, block);
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
