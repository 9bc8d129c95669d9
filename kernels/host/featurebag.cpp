// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/calls.h"

#include <cassert>
#include <cmath>

namespace pipewright::kernels {

void run(const FeatureBagForward& call)
{
    const auto [length, hidden, features, table, output] = call;
    const auto width = std::size_t(hidden), count = std::size_t(length), rows = features.size() / count;
    assert(output.size() == rows * width);
    const float scale = 1 / std::sqrt(float(length));
    for (std::size_t row = 0; row < rows; ++row) {
        float* out = output.data() + row * width;
        for (std::size_t i = 0; i < width; ++i)
            out[i] = 0;
        for (std::size_t f = row * count; f < (row + 1) * count; ++f) {
            assert(features[f] >= 0 && std::size_t(features[f]) * width < table.size());
            const float* weights = table.data() + std::size_t(features[f]) * width;
            for (std::size_t i = 0; i < width; ++i)
                out[i] += weights[i];
        }
        for (std::size_t i = 0; i < width; ++i)
            out[i] *= scale;
    }
}

void run(const FeatureBagWeightGrad& call)
{
    const auto [length, hidden, features, outputGrad, tableGrad] = call;
    const auto width = std::size_t(hidden), count = std::size_t(length), rows = features.size() / count;
    assert(outputGrad.size() == rows * width);
    const float scale = 1 / std::sqrt(float(length));
    for (std::size_t row = 0; row < rows; ++row) {
        const float* grad = outputGrad.data() + row * width;
        for (std::size_t f = row * count; f < (row + 1) * count; ++f) {
            assert(features[f] >= 0 && std::size_t(features[f]) * width < tableGrad.size());
            float* weights = tableGrad.data() + std::size_t(features[f]) * width;
            for (std::size_t i = 0; i < width; ++i)
                weights[i] += scale * grad[i];
        }
    }
}

} // namespace pipewright::kernels
