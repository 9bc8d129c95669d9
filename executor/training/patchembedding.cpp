// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/patchembedding.h"

namespace pipewright {

using kernels::Operations;

PatchEmbedding::PatchEmbedding(const ModelShape& shape, int layer, const StageLayout& layout,
                               const ParameterLayout& parameters)
    : m_pictures(int(shape.microbatchSize)), m_length(int(shape.sequence)), m_patches(parameters, layer, "patches"),
      m_classToken(parameters.at(layer, "classToken")), m_input(layout.slice(layer, "patches.input")),
      m_outputGrad(layout.slice(layer, "patches.outputGrad"))
{
    if (const Parameter* positions = parameters.findAt(layer, "positions.weight"))
        m_positions = *positions;
}

void PatchEmbedding::forward(std::span<const float> parameters, std::span<const std::int32_t> bytes,
                             const StageMemory& memory, std::span<float> stream) const
{
    const Operations& on = *memory.operations;
    const std::span<float> input = memory.floats(m_input);
    const std::size_t ofInput = input.size() / std::size_t(m_pictures),
                      ofStream = stream.size() / std::size_t(m_pictures), width = std::size_t(m_patches.outputs());
    on.run(kernels::FromBytes{bytes, input});
    for (std::size_t picture = 0; picture < std::size_t(m_pictures); ++picture) {
        const std::span<float> rows = stream.subspan(picture * ofStream, ofStream);
        on.copy(m_classToken.in(parameters), rows.first(width));
        m_patches.forward(on, m_length - 1, parameters, input.subspan(picture * ofInput, ofInput), rows.subspan(width));
        if (m_positions)
            on.run(kernels::Add{rows, m_positions->in(parameters)});
    }
}

void PatchEmbedding::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    const Operations& on = *memory.operations;
    const std::span<const float> input = memory.floats(m_input), grad = memory.floats(m_outputGrad);
    const std::size_t ofInput = input.size() / std::size_t(m_pictures), ofGrad = grad.size() / std::size_t(m_pictures),
                      width = std::size_t(m_patches.outputs());
    for (std::size_t picture = 0; picture < std::size_t(m_pictures); ++picture) {
        const std::span<const float> rows = grad.subspan(picture * ofGrad, ofGrad);
        on.run(kernels::Add{m_classToken.in(gradients), rows.first(width)});
        m_patches.weightGrad(on, m_length - 1, input.subspan(picture * ofInput, ofInput), rows.subspan(width),
                             gradients);
        if (m_positions)
            on.run(kernels::Add{m_positions->in(gradients), rows});
    }
}

} // namespace pipewright
