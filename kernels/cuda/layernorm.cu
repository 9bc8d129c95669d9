// SPDX-License-Identifier: GPL-3.0-or-later
// One block per row for what a row needs; what columns sum up is in columns.cuh, with the rows' statistics in scratch.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"

#include <algorithm>
#include <cassert>

namespace pipewright::kernels::cuda {

namespace {

struct RowStatistics {
    float mean, scale; // 1 / sqrt(variance + epsilon)
};

__device__ RowStatistics statisticsOf(const float* row, int columns, float epsilon)
{
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize)
        sum += row[i];
    const float mean = blockSum(sum) / float(columns);
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize)
        squares += (row[i] - mean) * (row[i] - mean);
    return {mean, rsqrtf(blockSum(squares) / float(columns) + epsilon)};
}

__global__ void forward(int columns, float epsilon, const float* x, const float* gamma, const float* beta, float* y)
{
    const std::size_t at = std::size_t(blockIdx.x) * columns;
    const RowStatistics row = statisticsOf(x + at, columns, epsilon);
    for (int i = threadIdx.x; i < columns; i += blockSize)
        y[at + i] = gamma[i] * ((x[at + i] - row.mean) * row.scale) + beta[i];
}

/// With g = dy · gamma and n the normalised row: dx, or what is added to it, = scale · (g - mean(g) - n · mean(g · n)).
/// In place is allowed: a thread reads what it writes before that, and others' only before the barriers of the sums.
__global__ void inputGradient(int columns, float epsilon, const float* x, const float* gamma, const float* dy,
                              float* dx, bool add)
{
    const std::size_t at = std::size_t(blockIdx.x) * columns;
    const RowStatistics row = statisticsOf(x + at, columns, epsilon);
    float grad = 0, product = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize) {
        const float g = dy[at + i] * gamma[i];
        grad += g;
        product += g * ((x[at + i] - row.mean) * row.scale);
    }
    const float meanGrad = blockSum(grad) / float(columns), meanProduct = blockSum(product) / float(columns);
    for (int i = threadIdx.x; i < columns; i += blockSize)
        dx[at + i] =
            (add ? dx[at + i] : 0.0f)
            + row.scale * (dy[at + i] * gamma[i] - meanGrad - (x[at + i] - row.mean) * row.scale * meanProduct);
}

__global__ void rowStatistics(int columns, float epsilon, const float* x, RowStatistics* statistics)
{
    const RowStatistics row = statisticsOf(x + std::size_t(blockIdx.x) * columns, columns, epsilon);
    if (threadIdx.x == 0)
        statistics[blockIdx.x] = row;
}

struct WeightSums {
    float gamma, beta;

    __device__ WeightSums& operator+=(const WeightSums& other)
    {
        gamma += other.gamma;
        beta += other.beta;
        return *this;
    }
};

__device__ WeightSums warpSum(const WeightSums& sums)
{
    return {cuda::warpSum(sums.gamma), cuda::warpSum(sums.beta)};
}

__global__ void weightGradient(int rows, int columns, const float* x, const float* dy, const RowStatistics* statistics,
                               float* gammaGrad, float* betaGrad)
{
    sumColumns<WeightSums>(
        rows, columns,
        [=](std::int64_t row, std::int64_t column) {
            const std::int64_t at = row * columns + column;
            const RowStatistics is = statistics[row];
            return WeightSums{dy[at] * ((x[at] - is.mean) * is.scale), dy[at]};
        },
        [=](std::int64_t column, const WeightSums& sums) {
            gammaGrad[column] += sums.gamma;
            betaGrad[column] += sums.beta;
        });
}

} // namespace

void run(const Context& context, const LayerNormForward& call)
{
    const auto [rows, columns, input, gamma, beta, output, epsilon] = call;
    if (rows > 0)
        forward<<<unsigned(rows), blockSize, 0, context.stream>>>(columns, epsilon, input.data(), gamma.data(),
                                                                  beta.data(), output.data());
}

void run(const Context& context, const LayerNormInputGrad& call)
{
    const auto [rows, columns, input, gamma, outputGrad, inputGrad, epsilon, store] = call;
    if (rows > 0)
        inputGradient<<<unsigned(rows), blockSize, 0, context.stream>>>(
            columns, epsilon, input.data(), gamma.data(), outputGrad.data(), inputGrad.data(), store == Store::Add);
}

void run(const Context& context, const LayerNormWeightGrad& call)
{
    const auto [rows, columns, input, outputGrad, gammaGrad, betaGrad, epsilon] = call;
    auto* const statistics = reinterpret_cast<RowStatistics*>(context.rowScratch.data());
    const int most = int(std::min<std::size_t>(context.rowScratch.size() / 2, std::size_t(rows)));
    assert(most > 0 || rows == 0);
    for (int first = 0; first < rows; first += most) { // once, but for more rows than there is scratch for
        const int some = std::min(most, rows - first);
        const std::size_t at = std::size_t(first) * columns;
        rowStatistics<<<unsigned(some), blockSize, 0, context.stream>>>(columns, epsilon, input.data() + at,
                                                                        statistics);
        weightGradient<<<columnBlocks(std::size_t(columns)), blockSize, 0, context.stream>>>(
            some, columns, input.data() + at, outputGrad.data() + at, statistics, gammaGrad.data(), betaGrad.data());
    }
}

} // namespace pipewright::kernels::cuda
