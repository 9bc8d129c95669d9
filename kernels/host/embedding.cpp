// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/calls.h"

#include <algorithm>
#include <cassert>

namespace pipewright::kernels {

void run(const EmbeddingForward& call)
{
    const auto [length, hidden, tokens, table, positions, output] = call;
    const auto width = std::size_t(hidden);
    assert(output.size() == tokens.size() * width && (positions.empty() || positions.size() == length * width));
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        assert(tokens[t] >= 0 && std::size_t(tokens[t]) * width < table.size());
        const float* word = table.data() + std::size_t(tokens[t]) * width;
        if (positions.empty()) {
            std::copy_n(word, width, output.data() + t * width);
            continue;
        }
        const float* place = positions.data() + t % std::size_t(length) * width;
        float* out = output.data() + t * width;
        for (std::size_t i = 0; i < width; ++i)
            out[i] = word[i] + place[i];
    }
}

void run(const EmbeddingWeightGrad& call)
{
    const auto [length, hidden, tokens, outputGrad, tableGrad, positionsGrad] = call;
    const auto width = std::size_t(hidden);
    assert(outputGrad.size() == tokens.size() * width
           && (positionsGrad.empty() || positionsGrad.size() == length * width));
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        assert(tokens[t] >= 0 && std::size_t(tokens[t]) * width < tableGrad.size());
        float* word = tableGrad.data() + std::size_t(tokens[t]) * width;
        const float* grad = outputGrad.data() + t * width;
        for (std::size_t i = 0; i < width; ++i)
            word[i] += grad[i];
        if (positionsGrad.empty())
            continue;
        float* place = positionsGrad.data() + t % std::size_t(length) * width;
        for (std::size_t i = 0; i < width; ++i)
            place[i] += grad[i];
    }
}

} // namespace pipewright::kernels
