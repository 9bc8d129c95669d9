// SPDX-License-Identifier: GPL-3.0-or-later
// The first layer of a vision transformer (Dosovitskiy et al., arXiv 2010.11929): one linear layer on the patches of a
// picture, a learned class token before them, and a position table added to all. Pictures come as bytes.
#pragma once

#include "executor/training/endlayers.h"

namespace pipewright {

class PatchEmbedding {
public:
    PatchEmbedding(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters);

    void forward(std::span<const float> parameters, std::span<const std::int32_t> bytes, const StageMemory& memory,
                 std::span<float> stream) const;
    std::span<float> outputGrad(const StageMemory& memory) const { return memory.floats(m_outputGrad); }
    void inputGrad(std::span<const float>, const StageMemory&, std::span<float>) const {}
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;

private:
    int m_pictures, m_length; ///< tokens of a picture, the class token included
    Linear m_patches;
    Parameter m_classToken;
    std::optional<Parameter> m_positions;
    Slice m_input, m_outputGrad;
};

} // namespace pipewright
