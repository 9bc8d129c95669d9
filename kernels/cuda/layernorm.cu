// SPDX-License-Identifier: GPL-3.0-or-later
// One block per row for what a row needs; what columns sum up is in columns.cuh, with the rows' statistics in scratch.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/stored.cuh"

namespace pipewright::kernels::cuda {

namespace {

struct RowStatistics {
    float mean, scale; // 1 / sqrt(variance + epsilon)
};

template<typename Element>
__device__ RowStatistics statisticsOf(In<Element> row, int columns, float epsilon)
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

template<typename Element>
__global__ void forward(int columns, float epsilon, In<Element> x, In<Element> gamma, In<Element> beta, Out<Element> y)
{
    const std::int64_t at = std::int64_t(blockIdx.x) * columns;
    const RowStatistics row = statisticsOf(x + at, columns, epsilon);
    for (int i = threadIdx.x; i < columns; i += blockSize)
        y[at + i] = gamma[i] * ((x[at + i] - row.mean) * row.scale) + beta[i];
}

/// With g = dy · gamma and n the normalised row: dx, or what is added to it, = scale · (g - mean(g) - n · mean(g · n)).
/// In place is allowed: a thread reads what it writes before that, and others' only before the barriers of the sums.
template<typename Element>
__global__ void inputGradient(int columns, float epsilon, In<Element> x, In<Element> gamma, In<Element> dy,
                              Out<Element> dx, bool add)
{
    const std::int64_t at = std::int64_t(blockIdx.x) * columns;
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
            (add ? float(dx[at + i]) : 0.0f)
            + row.scale * (dy[at + i] * gamma[i] - meanGrad - (x[at + i] - row.mean) * row.scale * meanProduct);
}

template<typename Element>
__global__ void rowStatistics(int columns, float epsilon, In<Element> x, RowStatistics* statistics)
{
    const RowStatistics row = statisticsOf(x + std::int64_t(blockIdx.x) * columns, columns, epsilon);
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

template<typename Element>
__global__ void weightGradient(int rows, int columns, In<Element> x, In<Element> dy, const RowStatistics* statistics,
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
    if (call.rows == 0)
        return;
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        forward<Element><<<unsigned(call.rows), blockSize, 0, context.stream>>>(
            call.columns, call.epsilon, in<Element>(call.input), in<Element>(call.gamma), in<Element>(call.beta),
            out<Element>(call.output));
    });
}

void run(const Context& context, const LayerNormInputGrad& call)
{
    if (call.rows == 0)
        return;
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        inputGradient<Element><<<unsigned(call.rows), blockSize, 0, context.stream>>>(
            call.columns, call.epsilon, in<Element>(call.input), in<Element>(call.gamma), in<Element>(call.outputGrad),
            out<Element>(call.inputGrad), call.store == Store::Add);
    });
}

void run(const Context& context, const LayerNormWeightGrad& call)
{
    auto* const statistics = reinterpret_cast<RowStatistics*>(context.rowScratch.data());
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        forRowsWithScratch(context, call.rows, sizeof(RowStatistics) / sizeof(float), [&](int first, int some) {
            const std::int64_t at = std::int64_t(first) * call.columns;
            rowStatistics<Element><<<unsigned(some), blockSize, 0, context.stream>>>(
                call.columns, call.epsilon, in<Element>(call.input) + at, statistics);
            weightGradient<Element><<<columnBlocks(std::size_t(call.columns)), blockSize, 0, context.stream>>>(
                some, call.columns, in<Element>(call.input) + at, in<Element>(call.outputGrad) + at, statistics,
                call.gammaGrad.data(), call.betaGrad.data());
        });
    });
}

} // namespace pipewright::kernels::cuda
