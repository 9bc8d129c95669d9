// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/residual.h"

namespace pipewright {

using kernels::Store;

Residual::Residual(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
                   const Names& names)
    : m_rows(int(shape.tokens())), m_normsSum(shape.architecture == Architecture::Encoder),
      m_norm(shape, parameters, layer, names.norm), m_normInput(layout.slice(layer, names.normInput)),
      m_input(layout.slice(layer, names.input))
{
    if (shape.postNorm) {
        m_behind.emplace(shape, parameters, layer, names.normBehind);
        m_inputOfBehind = layout.slice(layer, names.inputOfBehind);
    }
}

void Residual::enter(std::span<const float> parameters, const StageMemory& memory, std::span<const float> stream) const
{
    const kernels::Operations& on = *memory.operations;
    if (m_normsSum) {
        on.copy(stream, memory.floats(m_input));
        return;
    }
    on.copy(stream, memory.floats(m_normInput));
    m_norm.forward(on, m_rows, parameters, memory.floats(m_normInput), memory.floats(m_input));
}

void Residual::leave(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const
{
    const kernels::Operations& on = *memory.operations;
    if (m_behind)
        m_behind->forward(on, m_rows, parameters, memory.floats(m_inputOfBehind), stream, Store::Add);
    if (m_normsSum) {
        on.copy(stream, memory.floats(m_normInput));
        m_norm.forward(on, m_rows, parameters, memory.floats(m_normInput), stream);
    }
}

void Residual::enterGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                         std::span<float> outputGrad, std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    if (m_normsSum)
        m_norm.inputGradInPlace(on, m_rows, parameters, memory.floats(m_normInput), stream, gradients);
    if (m_behind)
        m_behind->inputGrad(on, m_rows, parameters, memory.floats(m_inputOfBehind), stream, outputGrad, gradients,
                            Store::Replace);
    else
        on.copy(stream, outputGrad);
}

void Residual::leaveGrad(std::span<const float> parameters, const StageMemory& memory, std::span<const float> inputGrad,
                         std::span<float> stream, std::span<float> gradients) const
{
    const kernels::Operations& on = *memory.operations;
    if (m_normsSum)
        on.run(kernels::Add{stream, inputGrad});
    else
        m_norm.inputGrad(on, m_rows, parameters, memory.floats(m_normInput), inputGrad, stream, gradients);
}

} // namespace pipewright
