// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/plainattention.h"

namespace pipewright {

PlainAttention::PlainAttention(const ModelShape& shape, int layer, const StageLayout& layout,
                               const ParameterLayout& parameters)
    : m_rows(int(shape.tokens())), m_attention{int(shape.microbatchSize), int(shape.sequence / shape.sequencePieces),
                                               shape.heads, int(shape.headSize), shape.sequencePieces},
      m_norm(shape, parameters, layer, "ln1"), m_qkv(parameters, layer, "qkv"),
      m_projection(parameters, layer, "projection"), m_normInput(layout.slice(layer, "ln1.input")),
      m_query(layout.slice(layer, "attention.query")), m_key(layout.slice(layer, "attention.key")),
      m_value(layout.slice(layer, "attention.value")), m_probabilities(layout.slice(layer, "attention.probabilities")),
      m_qkvInput(layout.slice(layer, "qkv.input")), m_projectionInput(layout.slice(layer, "projection.input")),
      m_qkvGrad(layout.slice(layer, "qkv.outputGrad")), m_projectionGrad(layout.slice(layer, "projection.outputGrad")),
      m_normGrad(layout.slice(layer, "d.ln")), m_scoresGrad(layout.slice(layer, "d.scores")),
      m_sequenceGradient(layout.slice(layer, "attention.sequenceGradient"))
{
}

void PlainAttention::forward(std::span<const float> parameters, const StageMemory& memory,
                             std::span<float> stream) const
{
    const kernels::Operations& on = *memory.operations;
    on.copy(stream, memory.floats(m_normInput));
    m_norm.forward(on, m_rows, parameters, memory.floats(m_normInput), memory.floats(m_qkvInput));
    // Query, key and value are separate tensors: a third of the outputs each.
    const int hidden = m_qkv.outputs() / 3;
    const Slice* parts[] = {&m_query, &m_key, &m_value};
    for (int part = 0; part < 3; ++part)
        m_qkv.part(part * hidden, hidden)
            .forward(on, m_rows, parameters, memory.floats(m_qkvInput), memory.floats(*parts[part]));
    recomputeCore(parameters, memory);
    m_projection.forward(on, m_rows, parameters, memory.floats(m_projectionInput), stream, kernels::Store::Add);
}

void PlainAttention::recomputeCore(std::span<const float>, const StageMemory& memory) const
{
    memory.operations->run(kernels::AttentionForward{
        m_attention, memory.floats(m_query), memory.floats(m_key), memory.floats(m_value),
        memory.floats(m_probabilities), memory.floats(m_projectionInput), memory.earlierPieces(m_key, m_value)});
}

void PlainAttention::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                               std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    const std::span<float> normGrad = memory.floats(m_normGrad), qkvGrad = memory.floats(m_qkvGrad);
    on.copy(stream, memory.floats(m_projectionGrad));
    m_projection.inputGrad(on, m_rows, parameters, memory.floats(m_projectionGrad), normGrad);
    on.run(kernels::AttentionInputGrad{m_attention, memory.floats(m_query), memory.floats(m_key),
                                       memory.floats(m_value), memory.floats(m_probabilities),
                                       memory.floats(m_projectionInput), normGrad, qkvGrad, memory.floats(m_scoresGrad),
                                       memory.earlierPieces(m_key, m_value), memory.floats(m_sequenceGradient)});
    m_qkv.inputGrad(on, m_rows, parameters, qkvGrad, normGrad);
    m_norm.inputGrad(on, m_rows, parameters, memory.floats(m_normInput), normGrad, stream, gradients);
}

void PlainAttention::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    m_qkv.weightGrad(on, m_rows, memory.floats(m_qkvInput), memory.floats(m_qkvGrad), gradients);
    m_projection.weightGrad(on, m_rows, memory.floats(m_projectionInput), memory.floats(m_projectionGrad), gradients);
}

} // namespace pipewright
