// SPDX-License-Identifier: GPL-3.0-or-later
// One block per row for what a row needs, one thread per column for what a column sums, rows in order.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"

namespace pipewright::kernels::cuda {

namespace {

struct RowStatistics {
    float mean, scale; // 1 / sqrt(variance + epsilon)
};

__device__ RowStatistics statisticsOf(const float* row, int columns)
{
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize)
        sum += row[i];
    const float mean = blockSum(sum) / float(columns);
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize)
        squares += (row[i] - mean) * (row[i] - mean);
    return {mean, rsqrtf(blockSum(squares) / float(columns) + layerNormEpsilon)};
}

__global__ void forward(int columns, const float* x, const float* gamma, const float* beta, float* y)
{
    const std::size_t at = std::size_t(blockIdx.x) * columns;
    const RowStatistics row = statisticsOf(x + at, columns);
    for (int i = threadIdx.x; i < columns; i += blockSize)
        y[at + i] = gamma[i] * ((x[at + i] - row.mean) * row.scale) + beta[i];
}

/// With g = dy · gamma and n the normalised row: dx += scale · (g - mean(g) - n · mean(g · n)).
__global__ void inputGradient(int columns, const float* x, const float* gamma, const float* dy, float* dx)
{
    const std::size_t at = std::size_t(blockIdx.x) * columns;
    const RowStatistics row = statisticsOf(x + at, columns);
    float grad = 0, product = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize) {
        const float g = dy[at + i] * gamma[i];
        grad += g;
        product += g * ((x[at + i] - row.mean) * row.scale);
    }
    const float meanGrad = blockSum(grad) / float(columns), meanProduct = blockSum(product) / float(columns);
    for (int i = threadIdx.x; i < columns; i += blockSize)
        dx[at + i] += row.scale * (dy[at + i] * gamma[i] - meanGrad - (x[at + i] - row.mean) * row.scale * meanProduct);
}

constexpr int tileRows = 32;

/// A block takes blockSize columns; the statistics of a few rows at a time are made by its warps.
__global__ void weightGradient(int rows, int columns, const float* x, const float* dy, float* gammaGrad,
                               float* betaGrad)
{
    __shared__ float means[tileRows], scales[tileRows];
    const int column = int(blockIdx.x * blockSize + threadIdx.x);
    float gamma = 0, beta = 0;
    for (int first = 0; first < rows; first += tileRows) {
        __syncthreads();
        for (int r = int(threadIdx.x / 32); r < tileRows && first + r < rows; r += int(blockSize / 32)) {
            const float* row = x + std::size_t(first + r) * columns;
            float sum = 0, squares = 0;
            for (int i = int(threadIdx.x % 32); i < columns; i += 32)
                sum += row[i];
            const float mean = warpSum(sum) / float(columns);
            for (int i = int(threadIdx.x % 32); i < columns; i += 32)
                squares += (row[i] - mean) * (row[i] - mean);
            squares = warpSum(squares);
            if (threadIdx.x % 32 == 0) {
                means[r] = mean;
                scales[r] = rsqrtf(squares / float(columns) + layerNormEpsilon);
            }
        }
        __syncthreads();
        for (int r = 0; column < columns && r < tileRows && first + r < rows; ++r) {
            const std::size_t at = std::size_t(first + r) * columns + column;
            gamma += dy[at] * ((x[at] - means[r]) * scales[r]);
            beta += dy[at];
        }
    }
    if (column < columns) {
        gammaGrad[column] += gamma;
        betaGrad[column] += beta;
    }
}

} // namespace

void run(const Context& context, const LayerNormForward& call)
{
    const auto [rows, columns, input, gamma, beta, output] = call;
    if (rows > 0)
        forward<<<unsigned(rows), blockSize, 0, context.stream>>>(columns, input.data(), gamma.data(), beta.data(),
                                                                  output.data());
}

void run(const Context& context, const LayerNormInputGrad& call)
{
    const auto [rows, columns, input, gamma, outputGrad, inputGrad] = call;
    if (rows > 0)
        inputGradient<<<unsigned(rows), blockSize, 0, context.stream>>>(columns, input.data(), gamma.data(),
                                                                        outputGrad.data(), inputGrad.data());
}

void run(const Context& context, const LayerNormWeightGrad& call)
{
    const auto [rows, columns, input, outputGrad, gammaGrad, betaGrad] = call;
    weightGradient<<<blocksFor(std::size_t(columns)), blockSize, 0, context.stream>>>(
        rows, columns, input.data(), outputGrad.data(), gammaGrad.data(), betaGrad.data());
}

} // namespace pipewright::kernels::cuda
