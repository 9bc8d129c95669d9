// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/encoderends.h"

#include "executor/training/mlp.h"

namespace pipewright {

using kernels::Operations;

EncoderEmbedding::EncoderEmbedding(const ModelShape& shape, int layer, const StageLayout& layout,
                                   const ParameterLayout& parameters)
    : m_rows(int(shape.tokens())), m_length(int(shape.sequence)), m_hidden(int(shape.hidden)),
      m_tokens(shape, layer, layout, parameters), m_segments(parameters.at(layer, "segments.weight")),
      m_norm(shape, parameters, layer, "norm"), m_normInput(layout.slice(layer, "norm.input"))
{
}

template<class Visit>
void EncoderEmbedding::forEachHalf(std::size_t values, Visit visit) const
{
    const std::size_t sequence = std::size_t(m_length) * std::size_t(m_hidden),
                      first = std::size_t(m_length - m_length / 2) * std::size_t(m_hidden);
    for (std::size_t begin = 0; begin < values; begin += sequence) {
        visit(begin, first, 0);
        if (first < sequence)
            visit(begin + first, sequence - first, 1);
    }
}

void EncoderEmbedding::forward(std::span<const float> parameters, std::span<const std::int32_t> tokens,
                               const StageMemory& memory, std::span<float> stream) const
{
    const Operations& on = *memory.operations;
    const std::span<float> sum = memory.floats(m_normInput);
    m_tokens.forward(parameters, tokens, memory, sum);
    forEachHalf(sum.size(), [&](std::size_t first, std::size_t count, int half) {
        const auto segment = m_segments.in(parameters).subspan(std::size_t(half) * std::size_t(m_hidden));
        on.run(kernels::TensorCall{kernels::TensorOperation::AddRepeated,
                                   0,
                                   {std::int64_t(count), m_hidden},
                                   {sum.data() + first, segment.data()},
                                   sum.data() + first,
                                   nullptr,
                                   nullptr});
    });
    m_norm.forward(on, m_rows, parameters, sum, stream);
}

void EncoderEmbedding::inputGrad(std::span<const float> parameters, const StageMemory& memory,
                                 std::span<float> gradients) const
{
    m_norm.inputGradInPlace(*memory.operations, m_rows, parameters, memory.floats(m_normInput), outputGrad(memory),
                            gradients);
}

void EncoderEmbedding::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    const std::span<float> grad = outputGrad(memory);
    m_tokens.weightGrad(memory, gradients);
    forEachHalf(grad.size(), [&](std::size_t first, std::size_t count, int half) {
        const auto segment = m_segments.in(gradients).subspan(std::size_t(half) * std::size_t(m_hidden));
        on.run(kernels::TensorCall{kernels::TensorOperation::SumRepeated,
                                   0,
                                   {std::int64_t(count), m_hidden},
                                   {grad.data() + first},
                                   segment.data(),
                                   nullptr,
                                   nullptr});
    });
}

PoolerHead::PoolerHead(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
                       float lossScale)
    : m_rows(int(shape.targets())), m_length(int(shape.sequence)), m_hidden(int(shape.hidden)), m_lossScale(lossScale),
      m_pooler(parameters, layer, "pooler"), m_stream(layout.slice(layer, "head.stream")),
      m_input(layout.slice(layer, "pooler.input")), m_output(layout.slice(layer, "pooler.activationInput")),
      m_probabilities(layout.slice(layer, "loss.probabilities")), m_targets(layout.slice(layer, "loss.targets")),
      m_outputGrad(layout.slice(layer, "pooler.outputGrad")), m_firstGrad(layout.slice(layer, "d.ln"))
{
}

void PoolerHead::forward(std::span<const float> parameters, std::span<const std::int32_t> targets,
                         const StageMemory& memory, std::span<float> loss) const
{
    const Operations& on = *memory.operations;
    const auto width = std::size_t(m_hidden);
    on.copy(targets, memory.integers(m_targets));
    for (std::size_t row = 0; row < std::size_t(m_rows); ++row)
        on.copy(memory.floats(m_stream).subspan(row * std::size_t(m_length) * width, width),
                memory.floats(m_input).subspan(row * width, width));
    m_pooler.forward(on, m_rows, parameters, memory.floats(m_input), memory.floats(m_output));
    const std::span<float> scores = memory.floats(m_probabilities);
    on.run(kernels::ActivationForward{kernels::ActivationKind::Tanh, memory.floats(m_output), scores});
    on.run(kernels::CrossEntropyForward{m_rows, m_hidden, scores, targets, m_lossScale, loss});
}

void PoolerHead::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                           std::span<float>) const
{
    const Operations& on = *memory.operations;
    const auto width = std::size_t(m_hidden);
    const std::span<float> grad = memory.floats(m_outputGrad), first = memory.floats(m_firstGrad);
    on.run(kernels::CrossEntropyInputGrad{m_rows, m_hidden, memory.floats(m_probabilities), memory.integers(m_targets),
                                          m_lossScale, grad});
    on.run(kernels::ActivationInputGrad{kernels::ActivationKind::Tanh, memory.floats(m_output), grad, grad});
    m_pooler.inputGrad(on, m_rows, parameters, grad, first);
    on.run(kernels::Fill{stream, 0});
    for (std::size_t row = 0; row < std::size_t(m_rows); ++row)
        on.copy(std::span<const float>(first.subspan(row * width, width)),
                stream.subspan(row * std::size_t(m_length) * width, width));
}

void PoolerHead::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    m_pooler.weightGrad(*memory.operations, m_rows, memory.floats(m_input), memory.floats(m_outputGrad), gradients);
}

MaskedTokenHead::MaskedTokenHead(const ModelShape& shape, int layer, const StageLayout& layout,
                                 const ParameterLayout& parameters, float lossScale)
    : m_rows(int(shape.targets())), m_activation(kindOf(shape.activation)), m_transform(parameters, layer, "transform"),
      m_tokens(shape, layer, layout, parameters, lossScale), m_transformInput(layout.slice(layer, "transform.input")),
      m_activationInput(layout.slice(layer, "transform.activationInput")),
      m_transformGrad(layout.slice(layer, "transform.outputGrad"))
{
}

void MaskedTokenHead::forward(std::span<const float> parameters, std::span<const std::int32_t> targets,
                              const StageMemory& memory, std::span<float> loss) const
{
    const Operations& on = *memory.operations;
    m_transform.forward(on, m_rows, parameters, memory.floats(m_transformInput), memory.floats(m_activationInput));
    on.run(kernels::ActivationForward{m_activation, memory.floats(m_activationInput), m_tokens.stream(memory)});
    m_tokens.forward(parameters, targets, memory, loss);
}

void MaskedTokenHead::inputGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                                std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    const std::span<float> grad = memory.floats(m_transformGrad);
    m_tokens.inputGrad(parameters, memory, grad, gradients);
    on.run(kernels::ActivationInputGrad{m_activation, memory.floats(m_activationInput), grad, grad});
    m_transform.inputGrad(on, m_rows, parameters, grad, stream);
}

void MaskedTokenHead::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    m_transform.weightGrad(*memory.operations, m_rows, memory.floats(m_transformInput), memory.floats(m_transformGrad),
                           gradients);
    m_tokens.weightGrad(memory, gradients);
}

} // namespace pipewright
