// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/endlayers.h"

#include <algorithm>

namespace pipewright {

using kernels::Operations;

EmbeddingLayer::EmbeddingLayer(const ModelShape& shape, int layer, const StageLayout& layout,
                               const ParameterLayout& parameters)
    : m_length(int(shape.sequence / shape.sequencePieces)), m_hidden(int(shape.hidden)),
      m_scale(float(shape.embeddingScale)), m_table(parameters.at(layer, "table.weight")),
      m_tokens(layout.slice(layer, "table.tokens")), m_outputGrad(layout.slice(layer, "table.outputGrad"))
{
    if (const Parameter* positions = parameters.findAt(layer, "positions.weight"))
        m_positions = *positions;
}

void EmbeddingLayer::forward(std::span<const float> parameters, std::span<const std::int32_t> tokens,
                             const StageMemory& memory, std::span<float> stream) const
{
    const Operations& on = *memory.operations;
    on.copy(tokens, memory.integers(m_tokens));
    on.run(kernels::EmbeddingForward{m_length, m_hidden, tokens, m_table.in(parameters),
                                     positions(parameters, memory.piece), stream});
    scale(on, stream);
}

void EmbeddingLayer::scale(const Operations& on, std::span<float> values) const
{
    if (m_scale != 1)
        on.run(kernels::TensorCall{kernels::TensorOperation::Scale,
                                   m_scale,
                                   {std::int64_t(values.size())},
                                   {values.data()},
                                   values.data(),
                                   nullptr,
                                   nullptr});
}

void EmbeddingLayer::inputGrad(std::span<const float>, const StageMemory& memory, std::span<float>) const
{
    scale(*memory.operations, memory.floats(m_outputGrad));
}

void EmbeddingLayer::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    on.run(kernels::EmbeddingWeightGrad{m_length, m_hidden, memory.integers(m_tokens), memory.floats(m_outputGrad),
                                        m_table.in(gradients), positions(gradients, memory.piece)});
}

FeatureLayer::FeatureLayer(const ModelShape& shape, int layer, const StageLayout& layout,
                           const ParameterLayout& parameters)
    : m_length(int(shape.inputs() / shape.tokens())), m_hidden(int(shape.hidden)),
      m_table(parameters.at(layer, "table.weight")), m_features(layout.slice(layer, "table.features")),
      m_outputGrad(layout.slice(layer, "table.outputGrad"))
{
}

void FeatureLayer::forward(std::span<const float> parameters, std::span<const std::int32_t> features,
                           const StageMemory& memory, std::span<float> stream) const
{
    memory.operations->copy(features, memory.integers(m_features));
    memory.operations->run(kernels::FeatureBagForward{m_length, m_hidden, features, m_table.in(parameters), stream});
}

void FeatureLayer::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    memory.operations->run(kernels::FeatureBagWeightGrad{m_length, m_hidden, memory.integers(m_features),
                                                         memory.floats(m_outputGrad), m_table.in(gradients)});
}

HeadLayer::HeadLayer(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
                     float lossScale)
    : m_rows(int(shape.targets())), m_vocabulary(int(shape.vocabulary)), m_apart(int(shape.tokens()) / m_rows),
      m_lossScale(lossScale), m_softCap(float(shape.logitsSoftCap)), m_norm(shape, parameters, layer, "norm"),
      m_projection(parameters, layer, "projection"), m_normInput(layout.slice(layer, "norm.input")),
      m_input(layout.slice(layer, "projection.input")), m_probabilities(layout.slice(layer, "loss.probabilities")),
      m_targets(layout.slice(layer, "loss.targets")), m_logitsGrad(layout.slice(layer, "projection.outputGrad")),
      m_normGrad(layout.slice(layer, "d.ln"))
{
    if (m_softCap > 0)
        m_capped = layout.slice(layer, "loss.logits");
}

void HeadLayer::forward(std::span<const float> parameters, std::span<const std::int32_t> targets,
                        const StageMemory& memory, std::span<float> loss) const
{
    const Operations& on = *memory.operations;
    on.copy(targets, memory.integers(m_targets));
    const int together = m_apart == 1 ? m_rows : 1;
    const auto width = std::size_t(m_projection.inputs()), part = width * std::size_t(together);
    for (std::size_t row = 0; row < std::size_t(m_rows); row += std::size_t(together))
        m_norm.forward(on, together, parameters,
                       memory.floats(m_normInput).subspan(row * std::size_t(m_apart) * width, part),
                       memory.floats(m_input).subspan(row * width, part));
    const std::span<float> logits = memory.floats(m_probabilities);
    m_projection.forward(on, m_rows, parameters, memory.floats(m_input), logits);
    if (m_softCap > 0) {
        on.run(kernels::SoftCap{m_softCap, logits});
        on.copy(std::span<const float>(logits), memory.floats(m_capped));
    }
    on.run(kernels::CrossEntropyForward{m_rows, m_vocabulary, logits, targets, m_lossScale, loss});
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

void HeadLayer::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                          std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    on.run(kernels::CrossEntropyInputGrad{m_rows, m_vocabulary, memory.floats(m_probabilities),
                                          memory.integers(m_targets), m_lossScale, memory.floats(m_logitsGrad)});
    if (m_softCap > 0)
        on.run(kernels::SoftCapGrad{m_softCap, memory.floats(m_capped), memory.floats(m_logitsGrad)});
    m_projection.inputGrad(on, m_rows, parameters, memory.floats(m_logitsGrad), memory.floats(m_normGrad));
    on.run(kernels::Fill{stream, 0});
    const int together = m_apart == 1 ? m_rows : 1;
    const auto width = std::size_t(m_projection.inputs()), part = width * std::size_t(together);
    for (std::size_t row = 0; row < std::size_t(m_rows); row += std::size_t(together)) {
        const std::size_t at = row * std::size_t(m_apart) * width;
        m_norm.inputGrad(on, together, parameters, memory.floats(m_normInput).subspan(at, part),
                         memory.floats(m_normGrad).subspan(row * width, part), stream.subspan(at, part), gradients);
    }
}

void HeadLayer::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    m_projection.weightGrad(*memory.operations, m_rows, memory.floats(m_input), memory.floats(m_logitsGrad), gradients);
}

} // namespace pipewright
