// SPDX-License-Identifier: GPL-3.0-or-later
// Lists the parts of the stage's layers once; F runs them from the first to the last, I and W from the last to the
// first. R runs F's parts again where everything is recomputed, or the attention cores alone. The cost is the parts'.
#include "executor/training/stagemaths.h"

#include "core/base/diagnostic.h"
#include "core/model/transformer.h"

#include <cassert>

namespace pipewright {

StageMaths::StageMaths(const Workload& workload, int first, int last, int microbatches, Recompute recompute)
    : m_layout(workload, first, last, recompute), m_parameters(workload, first, last),
      m_activationElements(std::size_t(workload.shape.tokens() * workload.shape.hidden))
{
    assert(microbatches > 0);
    const ModelShape& shape = workload.shape;
    const float lossScale = 1.0f / (float(shape.countedTargets()) * float(microbatches));
    for (int index = first; index < last; ++index) {
        switch (workload.layers[std::size_t(index)].kind) {
        case LayerKind::Embedding: addEmbedding(shape, index); break;
        case LayerKind::Transformer: addAttention(shape, index, index - 1); [[fallthrough]]; // after the embedding
        case LayerKind::Mlp: addMlp(shape, index, index - 1, microbatches); break;
        case LayerKind::Head: addHead(shape, index, lossScale); break;
        case LayerKind::Other:
            throw Error(workload.layers[std::size_t(index)].name, "this layer has no mathematics",
                        "run a model made of its dimensions");
        }
    }
}

void StageMaths::addEmbedding(const ModelShape& shape, int layer)
{
    switch (shape.architecture) {
    case Architecture::Decoder: m_embedding.emplace(EmbeddingLayer(shape, layer, m_layout, m_parameters)); break;
    case Architecture::Encoder: m_embedding.emplace(EncoderEmbedding(shape, layer, m_layout, m_parameters)); break;
    case Architecture::Vision: m_embedding.emplace(PatchEmbedding(shape, layer, m_layout, m_parameters)); break;
    case Architecture::Classifier: m_embedding.emplace(FeatureLayer(shape, layer, m_layout, m_parameters)); break;
    case Architecture::Table: break; // refused before
    }
}

void StageMaths::addHead(const ModelShape& shape, int layer, float lossScale)
{
    m_probabilities = m_layout.slice(layer, "loss.probabilities");
    m_targets = m_layout.slice(layer, "loss.targets");
    if (shape.architecture != Architecture::Encoder)
        m_head.emplace(HeadLayer(shape, layer, m_layout, m_parameters, lossScale));
    else if (shape.tiedHead)
        m_head.emplace(MaskedTokenHead(shape, layer, m_layout, m_parameters, lossScale));
    else
        m_head.emplace(PoolerHead(shape, layer, m_layout, m_parameters, lossScale));
}

std::span<float> StageMaths::headStream(const StageMemory& memory) const
{
    return std::visit([&](const auto& head) { return head.stream(memory); }, *m_head);
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

void StageMaths::addMlp(const ModelShape& shape, int layer, int number, int microbatches)
{
    if (hasExperts(shape, number))
        m_parts.push_back({layer, Experts(shape, layer, m_layout, m_parameters, microbatches)});
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
        std::visit([&](const auto& of) { of.forward(parameters, input.tokens, memoryOf(first), stream); },
                   *m_embedding);
    else if (input.activation.data() != stream.data())
        memoryOf(first).operations->copy(input.activation, stream);
    for (const std::span<const float> skip : input.skips)
        memoryOf(first).operations->run(kernels::Add{stream, skip});
    for (const Part& part : m_parts) {
        const StageMemory memory = memoryOf(part.layer);
        std::visit([&](const auto& of) { of.forward(parameters, memory, stream); }, part.maths);
    }
    if (m_head)
        std::visit(
            [&](const auto& head) {
                head.forward(parameters, input.targets, memoryOf(m_layout.lastLayer() - 1), input.loss);
            },
            *m_head);
}

void StageMaths::forward(std::span<const float> parameters, const StageInput& input, const StageMemory& memory,
                         std::span<float> output) const
{
    const auto memoryOf = [&](int layer) { return m_layout.scratchOf(layer, memory); };
    runForward(parameters, input, memoryOf, m_head ? headStream(memoryOf(m_layout.lastLayer() - 1)) : output);
}

void StageMaths::recompute(std::span<const float> parameters, const StageInput& input, const StageMemory& memory) const
{
    switch (m_layout.recompute()) {
    case Recompute::None: break;
    case Recompute::Selective: recomputeCores(parameters, memory); break;
    case Recompute::Full: {
        const std::span<float> scratch{reinterpret_cast<float*>(memory.workspace.data()),
                                       memory.workspace.size() / sizeof(float)};
        runForward(
            parameters, input, [&](int) { return memory; }, m_head ? headStream(memory) : scratch);
        break;
    }
    }
}

void StageMaths::recomputeCores(std::span<const float> parameters, const StageMemory& memory) const
{
    for (const Part& part : m_parts)
        std::visit(
            [&](const auto& of) {
                if constexpr (requires { of.recomputeCore(parameters, memory); })
                    of.recomputeCore(parameters, memory);
            },
            part.maths);
}

void StageMaths::inputGrad(std::span<const float> parameters, const StageMemory& memory,
                           std::span<const float> outputGrad, std::span<float> inputGrad, std::span<float> gradients,
                           std::span<const std::span<const float>> skipGrads) const
{
    assert(parameters.size() == m_parameters.count() && gradients.size() == m_parameters.count());
    const std::span<float> stream =
        m_embedding ? std::visit([&](const auto& of) { return of.outputGrad(memory); }, *m_embedding) : inputGrad;
    if (m_head)
        std::visit([&](const auto& head) { head.inputGrad(parameters, memory, stream, gradients); }, *m_head);
    else if (outputGrad.data() != stream.data())
        memory.operations->copy(outputGrad, stream);
    for (const std::span<const float> skip : skipGrads)
        memory.operations->run(kernels::Add{stream, skip});
    for (auto part = m_parts.rbegin(); part != m_parts.rend(); ++part)
        std::visit([&](const auto& of) { of.inputGrad(parameters, memory, stream, gradients); }, part->maths);
    if (m_embedding)
        std::visit([&](const auto& of) { of.inputGrad(parameters, memory, gradients); }, *m_embedding);
}

void StageMaths::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    assert(gradients.size() == m_parameters.count());
    if (m_embedding)
        std::visit([&](const auto& of) { of.weightGrad(memory, gradients); }, *m_embedding);
    for (const Part& part : m_parts)
        std::visit([&](const auto& of) { of.weightGrad(memory, gradients); }, part.maths);
    if (m_head)
        std::visit([&](const auto& head) { head.weightGrad(memory, gradients); }, *m_head);
}

void StageMaths::backward(std::span<const float> parameters, const StageMemory& memory,
                          std::span<const float> outputGrad, std::span<float> inputGrad, std::span<float> gradients,
                          std::span<const std::span<const float>> skipGrads) const
{
    this->inputGrad(parameters, memory, outputGrad, inputGrad, gradients, skipGrads);
    weightGrad(memory, gradients);
}

} // namespace pipewright
