// SPDX-License-Identifier: GPL-3.0-or-later
// Row by row: mean and variance in two passes over the row, then the formulas of Ba et al. (arXiv 1607.06450).
// O(rows · columns); sums in a fixed number of lanes (simd.h).
#include "kernels/calls.h"

#include "kernels/host/simd.h"

#include <cassert>
#include <cmath>

namespace pipewright::kernels {
namespace {

struct RowStatistics {
    float mean = 0;
    float scale = 0; ///< 1 / sqrt(variance + epsilon)
};

[[gnu::always_inline]] inline RowStatistics statisticsOf(const float* row, std::size_t columns, float epsilon)
{
    const float mean = sumInLanes(columns, [&](std::size_t i) { return row[i]; }) / float(columns);
    const float squares = sumInLanes(columns, [&](std::size_t i) {
        const float centred = row[i] - mean;
        return centred * centred;
    });
    return {mean, 1.0f / std::sqrt(squares / float(columns) + epsilon)};
}

PIPEWRIGHT_VECTOR_CLONES
void forwardRow(std::size_t columns, float epsilon, const float* x, const float* gamma, const float* beta, float* y)
{
    const auto [mean, scale] = statisticsOf(x, columns, epsilon);
    for (std::size_t i = 0; i < columns; ++i)
        y[i] = gamma[i] * ((x[i] - mean) * scale) + beta[i];
}

/// With g = dy · gamma and n the normalised row: dx = scale · (g - mean(g) - n · mean(g · n)).
PIPEWRIGHT_VECTOR_CLONES
void inputGradRow(std::size_t columns, float epsilon, const float* x, const float* gamma, const float* dy, float* dx,
                  bool add)
{
    const auto [mean, scale] = statisticsOf(x, columns, epsilon);
    const float meanGrad = sumInLanes(columns, [=](std::size_t i) { return dy[i] * gamma[i]; }) / float(columns);
    const float meanProduct =
        sumInLanes(columns, [=, m = mean, s = scale](std::size_t i) { return dy[i] * gamma[i] * ((x[i] - m) * s); })
        / float(columns);
    if (add)
        for (std::size_t i = 0; i < columns; ++i)
            dx[i] += scale * (dy[i] * gamma[i] - meanGrad - (x[i] - mean) * scale * meanProduct);
    else // in place is allowed: each element depends on its own index only
        PIPEWRIGHT_INDEPENDENT
    for (std::size_t i = 0; i < columns; ++i)
        dx[i] = scale * (dy[i] * gamma[i] - meanGrad - (x[i] - mean) * scale * meanProduct);
}

PIPEWRIGHT_VECTOR_CLONES
void weightGradRow(std::size_t columns, float epsilon, const float* x, const float* dy, float* gammaGrad,
                   float* betaGrad)
{
    const auto [mean, scale] = statisticsOf(x, columns, epsilon);
    for (std::size_t i = 0; i < columns; ++i) {
        gammaGrad[i] += dy[i] * ((x[i] - mean) * scale);
        betaGrad[i] += dy[i];
    }
}

} // namespace

void run(const LayerNormForward& call)
{
    const auto [rows, columns, input, gamma, beta, output, epsilon] = call;
    const auto width = std::size_t(columns);
    assert(input.size() == rows * width && output.size() == rows * width);
    assert(gamma.size() == width && beta.size() == width);
    for (std::size_t at = 0; at < input.size(); at += width)
        forwardRow(width, epsilon, &input[at], gamma.data(), beta.data(), &output[at]);
}

void run(const LayerNormInputGrad& call)
{
    const auto [rows, columns, input, gamma, outputGrad, inputGrad, epsilon, store] = call;
    const auto width = std::size_t(columns);
    assert(input.size() == rows * width && outputGrad.size() == rows * width && inputGrad.size() == rows * width);
    assert(gamma.size() == width);
    for (std::size_t at = 0; at < input.size(); at += width)
        inputGradRow(width, epsilon, &input[at], gamma.data(), &outputGrad[at], &inputGrad[at], store == Store::Add);
}

void run(const LayerNormWeightGrad& call)
{
    const auto [rows, columns, input, outputGrad, gammaGrad, betaGrad, epsilon] = call;
    const auto width = std::size_t(columns);
    assert(input.size() == rows * width && outputGrad.size() == rows * width);
    assert(gammaGrad.size() == width && betaGrad.size() == width);
    for (std::size_t at = 0; at < input.size(); at += width)
        weightGradRow(width, epsilon, &input[at], &outputGrad[at], gammaGrad.data(), betaGrad.data());
}

} // namespace pipewright::kernels
