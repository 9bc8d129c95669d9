// SPDX-License-Identifier: GPL-3.0-or-later
// Row by row, sums in a fixed number of lanes (simd.h). O(rows · columns).
#include "kernels/calls.h"

#include "kernels/host/simd.h"

#include <cassert>
#include <cmath>

namespace pipewright::kernels {
namespace {

[[gnu::always_inline]] inline float inverseRms(const float* x, std::size_t columns, float epsilon)
{
    const float squares = sumInLanes(columns, [=](std::size_t i) { return x[i] * x[i]; });
    return 1.0f / std::sqrt(squares / float(columns) + epsilon);
}

PIPEWRIGHT_VECTOR_CLONES
void rmsForwardRow(std::size_t columns, float epsilon, const float* x, const float* gamma, float* y, bool add)
{
    const float scale = inverseRms(x, columns, epsilon);
    if (add)
        for (std::size_t i = 0; i < columns; ++i)
            y[i] += gamma[i] * (x[i] * scale);
    else
        for (std::size_t i = 0; i < columns; ++i)
            y[i] = gamma[i] * (x[i] * scale);
}

/// With g = dy · gamma and r = 1 / rms: dx = r · g - x · r³ · mean(g · x).
PIPEWRIGHT_VECTOR_CLONES
void rmsInputGradRow(std::size_t columns, float epsilon, const float* x, const float* gamma, const float* dy, float* dx,
                     bool add)
{
    const float scale = inverseRms(x, columns, epsilon);
    const float mean = sumInLanes(columns, [=](std::size_t i) { return dy[i] * gamma[i] * x[i]; }) / float(columns);
    const float share = scale * scale * mean;
    if (add)
        for (std::size_t i = 0; i < columns; ++i)
            dx[i] += scale * (dy[i] * gamma[i] - x[i] * share);
    else // in place is allowed: each element depends on its own index only
        PIPEWRIGHT_INDEPENDENT
    for (std::size_t i = 0; i < columns; ++i)
        dx[i] = scale * (dy[i] * gamma[i] - x[i] * share);
}

PIPEWRIGHT_VECTOR_CLONES
void rmsWeightGradRow(std::size_t columns, float epsilon, const float* x, const float* dy, float* gammaGrad)
{
    const float scale = inverseRms(x, columns, epsilon);
    for (std::size_t i = 0; i < columns; ++i)
        gammaGrad[i] += dy[i] * (x[i] * scale);
}

} // namespace

void run(const RmsNormForward& call)
{
    const auto [rows, columns, epsilon, input, gamma, output, store] = call;
    const auto width = std::size_t(columns);
    assert(input.size() == rows * width && output.size() == rows * width && gamma.size() == width);
    for (std::size_t at = 0; at < input.size(); at += width)
        rmsForwardRow(width, epsilon, &input[at], gamma.data(), &output[at], store == Store::Add);
}

void run(const RmsNormInputGrad& call)
{
    const auto [rows, columns, epsilon, input, gamma, outputGrad, inputGrad, store] = call;
    const auto width = std::size_t(columns);
    assert(input.size() == rows * width && outputGrad.size() == rows * width && inputGrad.size() == rows * width);
    assert(gamma.size() == width);
    for (std::size_t at = 0; at < input.size(); at += width)
        rmsInputGradRow(width, epsilon, &input[at], gamma.data(), &outputGrad[at], &inputGrad[at], store == Store::Add);
}

void run(const RmsNormWeightGrad& call)
{
    const auto [rows, columns, epsilon, input, outputGrad, gammaGrad] = call;
    const auto width = std::size_t(columns);
    assert(input.size() == rows * width && outputGrad.size() == rows * width && gammaGrad.size() == width);
    for (std::size_t at = 0; at < input.size(); at += width)
        rmsWeightGradRow(width, epsilon, &input[at], &outputGrad[at], gammaGrad.data());
}

} // namespace pipewright::kernels
