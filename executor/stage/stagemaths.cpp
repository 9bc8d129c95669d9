// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the layers of the stage: F from the first to the last, I from the last to the first. R runs F again where
// everything is recomputed, or the attention cores alone. The cost is the layers'.
#include "executor/stage/stagemaths.h"

#include "core/base/diagnostic.h"
#include "core/model/modelgraph.h"
#include "core/model/transformer.h"
#include "executor/stage/kernelsettings.h"
#include "executor/stage/layerplan.h"

#include <algorithm>
#include <cassert>

namespace pipewright {

namespace {

LayerRange rangeOf(const Workload& workload, int index)
{
    switch (workload.layers[std::size_t(index)].kind) {
    case LayerKind::Embedding: return {0, 0, true, false};
    case LayerKind::Transformer:
    case LayerKind::Mlp: return {index - 1, 1, false, false}; // behind the embedding
    case LayerKind::Head: return {workload.shape.layers, 0, false, true};
    case LayerKind::Other: break;
    }
    throw Error(workload.layers[std::size_t(index)].name, "this layer has no mathematics",
                "run a model made of its dimensions");
}

int countCorrect(std::span<const float> probabilities, std::span<const std::int32_t> targets)
{
    const std::size_t classes = probabilities.size() / targets.size();
    int count = 0;
    for (std::size_t row = 0; row < targets.size(); ++row) {
        const auto begin = probabilities.begin() + std::ptrdiff_t(row * classes);
        count += std::max_element(begin, begin + std::ptrdiff_t(classes)) - begin == targets[row];
    }
    return count;
}

} // namespace

StageMaths::StageMaths(const Workload& workload, int first, int last, int microbatches, Recompute recompute)
    : m_layout(workload, first, last, recompute), m_parameters(workload, first, last),
      m_activationElements(std::size_t(workload.shape.tokens() * workload.shape.hidden))
{
    assert(microbatches > 0);
    const ModelShape& shape = workload.shape;
    const LayerSettings settings{1.0f / (float(shape.countedTargets()) * float(microbatches)),
                                 balanceOver(shape, microbatches)};
    const bool plainAttention = attentionCoreOf(shape) == AttentionCore::Plain;
    for (int index = first; index < last; ++index) {
        const LayerPlan plan(stageGraph(shape, {}, rangeOf(workload, index)), index, plainAttention, m_layout,
                             m_parameters);
        m_layers.emplace_back(plan, settings);
        if (plan.isEmbedding())
            m_embeddingGrad = plan.embeddingGradient();
        if (!plan.isHead())
            continue;
        const auto kept = plan.kept(0);
        m_headStream = kept ? *kept : m_layout.slice(index, "head.stream");
        m_probabilities = m_layout.slice(index, "loss.probabilities");
        m_targets = m_layout.slice(index, "loss.targets");
    }
}

int StageMaths::correct(const StageMemory& memory) const
{
    return hasHead() ? countCorrect(probabilities(memory), memory.integers(m_targets)) : 0;
}

template<class MemoryOf>
void StageMaths::runForward(std::span<const float> parameters, const StageInput& input, MemoryOf memoryOf,
                            std::span<float> stream) const
{
    assert(parameters.size() == m_parameters.count());
    const int first = m_layout.firstLayer();
    if (!hasEmbedding() && input.activation.data() != stream.data())
        memoryOf(first).operations->copy(input.activation, stream);
    for (int layer = first; layer < m_layout.lastLayer(); ++layer) {
        const StageMemory memory = memoryOf(layer);
        // Skip connections arrive behind an embedding, and before any other first layer.
        const auto addSkips = [&] {
            for (const std::span<const float> skip : input.skips)
                memory.operations->run(kernels::Add{stream, skip});
        };
        if (layer == first && !hasEmbedding())
            addSkips();
        m_layers[std::size_t(layer - first)].forward(
            {memory, parameters, stream, {}, input.tokens, input.targets, input.loss});
        if (layer == first && hasEmbedding())
            addSkips();
    }
}

void StageMaths::forward(std::span<const float> parameters, const StageInput& input, const StageMemory& memory,
                         std::span<float> output) const
{
    const auto memoryOf = [&](int layer) { return m_layout.scratchOf(layer, memory); };
    runForward(parameters, input, memoryOf,
               m_headStream ? memoryOf(m_layout.lastLayer() - 1).floats(*m_headStream) : output);
}

void StageMaths::recompute(std::span<const float> parameters, const StageInput& input, const StageMemory& memory) const
{
    if (m_layout.recompute() == Recompute::BlockSelective) {
        recomputeCores(parameters, memory);
    } else if (m_layout.recompute() == Recompute::Block) {
        const std::span<float> stream =
            m_headStream ? memory.floats(*m_headStream)
                         : std::span(reinterpret_cast<float*>(memory.workspace.data()), m_activationElements);
        runForward(
            parameters, input, [&](int) { return memory; }, stream);
    }
}

void StageMaths::recomputeCores(std::span<const float> parameters, const StageMemory& memory) const
{
    for (const LayerMaths& layer : m_layers)
        layer.recomputeCores({memory, parameters});
}

void StageMaths::inputGrad(std::span<const float> parameters, const StageMemory& memory,
                           std::span<const float> outputGrad, std::span<float> inputGrad, std::span<float> gradients,
                           std::span<const std::span<const float>> skipGrads) const
{
    assert(parameters.size() == m_parameters.count() && gradients.size() == m_parameters.count());
    const StepContext pass{memory, parameters, m_embeddingGrad ? memory.floats(*m_embeddingGrad) : inputGrad,
                           gradients};
    auto layer = m_layers.rbegin();
    if (hasHead())
        (layer++)->inputGrad(pass);
    else if (outputGrad.data() != pass.stream.data())
        memory.operations->copy(outputGrad, pass.stream);
    for (const std::span<const float> skip : skipGrads)
        memory.operations->run(kernels::Add{pass.stream, skip});
    for (; layer != m_layers.rend(); ++layer)
        layer->inputGrad(pass);
}

void StageMaths::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    assert(gradients.size() == m_parameters.count());
    for (const LayerMaths& layer : m_layers)
        layer.weightGrad({memory, {}, {}, gradients});
}

void StageMaths::backward(std::span<const float> parameters, const StageMemory& memory,
                          std::span<const float> outputGrad, std::span<float> inputGrad, std::span<float> gradients,
                          std::span<const std::span<const float>> skipGrads) const
{
    this->inputGrad(parameters, memory, outputGrad, inputGrad, gradients, skipGrads);
    weightGrad(memory, gradients);
}

} // namespace pipewright
