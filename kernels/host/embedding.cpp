// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/embedding.h"

#include <cassert>

namespace pipewright::kernels {

void embeddingForward(int length, int hidden, std::span<const std::int32_t> tokens, std::span<const float> table,
                      std::span<const float> positions, std::span<float> output)
{
    const auto width = std::size_t(hidden);
    assert(output.size() == tokens.size() * width && positions.size() == length * width);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        assert(tokens[t] >= 0 && std::size_t(tokens[t]) * width < table.size());
        const float* word = table.data() + std::size_t(tokens[t]) * width;
        const float* place = positions.data() + t % std::size_t(length) * width;
        float* out = output.data() + t * width;
        for (std::size_t i = 0; i < width; ++i)
            out[i] = word[i] + place[i];
    }
}

void embeddingWeightGrad(int length, int hidden, std::span<const std::int32_t> tokens,
                         std::span<const float> outputGrad, std::span<float> tableGrad, std::span<float> positionsGrad)
{
    const auto width = std::size_t(hidden);
    assert(outputGrad.size() == tokens.size() * width && positionsGrad.size() == length * width);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        assert(tokens[t] >= 0 && std::size_t(tokens[t]) * width < tableGrad.size());
        float* word = tableGrad.data() + std::size_t(tokens[t]) * width;
        float* place = positionsGrad.data() + t % std::size_t(length) * width;
        const float* grad = outputGrad.data() + t * width;
        for (std::size_t i = 0; i < width; ++i) {
            word[i] += grad[i];
            place[i] += grad[i];
        }
    }
}

} // namespace pipewright::kernels
