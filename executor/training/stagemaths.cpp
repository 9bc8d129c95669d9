// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/stagemaths.h"

#include "core/base/diagnostic.h"
#include "core/workload/transformer.h"

#include <cassert>

namespace pipewright {

StageMaths::StageMaths(const Workload& workload, int first, int last, int microbatches, Recompute recompute)
    : m_layout(workload, first, last, recompute), m_parameters(workload, first, last),
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
        case LayerKind::Transformer: addAttention(shape, index, index - 1); [[fallthrough]]; // behind the embedding
        case LayerKind::Mlp: addMlp(shape, index, index - 1); break;
        case LayerKind::Head: m_head.emplace(shape, index, m_layout, m_parameters, lossScale); break;
        case LayerKind::Other:
            throw Error(workload.layers[std::size_t(index)].name, "this layer has no mathematics",
                        "run a model made of its dimensions");
        }
    }
}

void StageMaths::addAttention(const ModelShape& shape, int layer, int number)
{
    switch (attentionCoreOf(shape)) {
    case AttentionCore::Plain: m_parts.push_back({layer, PlainAttention(shape, layer, m_layout, m_parameters)}); break;
    case AttentionCore::Grouped:
        m_parts.push_back({layer, GroupedAttention(shape, layer, number, m_layout, m_parameters)});
        break;
    case AttentionCore::Latent:
        m_parts.push_back({layer, LatentAttention(shape, layer, number, m_layout, m_parameters)});
        break;
    }
}

void StageMaths::addMlp(const ModelShape& shape, int layer, int number)
{
    if (hasExperts(shape, number))
        m_parts.push_back({layer, Experts(shape, layer, m_layout, m_parameters)});
    else
        m_parts.push_back({layer, Mlp(shape, layer, m_layout, m_parameters)});
}

template<class MemoryOf>
void StageMaths::runForward(std::span<const float> parameters, const StageInput& input, MemoryOf memoryOf,
                            std::span<float> stream) const
{
    assert(parameters.size() == m_parameters.count());
    const int first = m_layout.firstLayer();
    if (m_embedding)
        m_embedding->forward(parameters, input.tokens, memoryOf(first), stream);
    else if (m_features)
        m_features->forward(parameters, input.tokens, memoryOf(first), stream);
    else
        memoryOf(first).operations->copy(input.activation, stream);
    for (const std::span<const float> skip : input.skips)
        memoryOf(first).operations->run(kernels::Add{stream, skip});
    for (const Part& part : m_parts) {
        const StageMemory memory = memoryOf(part.layer);
        std::visit([&](const auto& of) { of.forward(parameters, memory, stream); }, part.maths);
    }
    if (m_head)
        m_head->forward(parameters, input.targets, memoryOf(m_layout.lastLayer() - 1), input.loss);
}

void StageMaths::forward(std::span<const float> parameters, const StageInput& input, const StageMemory& memory,
                         std::span<float> output) const
{
    const auto memoryOf = [&](int layer) { return m_layout.scratchOf(layer, memory); };
    runForward(parameters, input, memoryOf, m_head ? m_head->stream(memoryOf(m_layout.lastLayer() - 1)) : output);
}

void StageMaths::recompute(std::span<const float> parameters, const StageInput& input, const StageMemory& memory) const
{
    switch (m_layout.recompute()) {
    case Recompute::None: break;
    case Recompute::Selective:
        for (const Part& part : m_parts)
            std::visit(
                [&](const auto& of) {
                    if constexpr (requires { of.recomputeCore(memory); })
                        of.recomputeCore(memory);
                },
                part.maths);
        break;
    case Recompute::Full: {
        const std::span<float> scratch{reinterpret_cast<float*>(memory.workspace.data()),
                                       memory.workspace.size() / sizeof(float)};
        runForward(
            parameters, input, [&](int) { return memory; }, m_head ? m_head->stream(memory) : scratch);
        break;
    }
    }
}

void StageMaths::inputGrad(std::span<const float> parameters, const StageMemory& memory,
                           std::span<const float> outputGrad, std::span<float> inputGrad, std::span<float> gradients,
                           std::span<const std::span<const float>> skipGrads) const
{
    assert(parameters.size() == m_parameters.count() && gradients.size() == m_parameters.count());
    const std::span<float> stream = m_embedding  ? m_embedding->outputGrad(memory)
                                    : m_features ? m_features->outputGrad(memory)
                                                 : inputGrad;
    if (m_head)
        m_head->inputGrad(parameters, memory, stream, gradients);
    else
        memory.operations->copy(outputGrad, stream);
    for (const std::span<const float> skip : skipGrads)
        memory.operations->run(kernels::Add{stream, skip});
    for (auto part = m_parts.rbegin(); part != m_parts.rend(); ++part)
        std::visit([&](const auto& of) { of.inputGrad(parameters, memory, stream, gradients); }, part->maths);
}

void StageMaths::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    assert(gradients.size() == m_parameters.count());
    if (m_embedding)
        m_embedding->weightGrad(memory, gradients);
    if (m_features)
        m_features->weightGrad(memory, gradients);
    for (const Part& part : m_parts)
        std::visit([&](const auto& of) { of.weightGrad(memory, gradients); }, part.maths);
    if (m_head)
        m_head->weightGrad(memory, gradients);
}

void StageMaths::backward(std::span<const float> parameters, const StageMemory& memory,
                          std::span<const float> outputGrad, std::span<float> inputGrad, std::span<float> gradients,
                          std::span<const std::span<const float>> skipGrads) const
{
    this->inputGrad(parameters, memory, outputGrad, inputGrad, gradients, skipGrads);
    weightGrad(memory, gradients);
}

} // namespace pipewright
