// SPDX-License-Identifier: GPL-3.0-or-later
// One block per row for what a row needs; what columns sum up is in columns.cuh, with the rows' scales in scratch.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/stored.cuh"

namespace pipewright::kernels::cuda {

namespace {

template<typename Element>
__device__ float inverseRms(In<Element> row, int columns, float epsilon)
{
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize)
        squares += row[i] * row[i];
    return rsqrtf(blockSum(squares) / float(columns) + epsilon);
}

template<typename Element>
__global__ void forward(int columns, float epsilon, In<Element> x, In<Element> gamma, Out<Element> y, bool add)
{
    const std::int64_t at = std::int64_t(blockIdx.x) * columns;
    const float scale = inverseRms(x + at, columns, epsilon);
    for (int i = threadIdx.x; i < columns; i += blockSize)
        y[at + i] = (add ? float(y[at + i]) : 0.0f) + gamma[i] * (x[at + i] * scale);
}

/// With g = dy · gamma and r = 1 / rms: dx, or what is added to it, = r · (g - x · r² · mean(g · x)). In place is
/// allowed: a thread reads what it writes before that, and others' only before the barriers of the sums.
template<typename Element>
__global__ void inputGradient(int columns, float epsilon, In<Element> x, In<Element> gamma, In<Element> dy,
                              Out<Element> dx, bool add)
{
    const std::int64_t at = std::int64_t(blockIdx.x) * columns;
    const float scale = inverseRms(x + at, columns, epsilon);
    float product = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize)
        product += dy[at + i] * gamma[i] * x[at + i];
    const float share = scale * scale * (blockSum(product) / float(columns));
    for (int i = threadIdx.x; i < columns; i += blockSize)
        dx[at + i] = (add ? float(dx[at + i]) : 0.0f) + scale * (dy[at + i] * gamma[i] - x[at + i] * share);
}

template<typename Element>
__global__ void rowScales(int columns, float epsilon, In<Element> x, float* scales)
{
    const float scale = inverseRms(x + std::int64_t(blockIdx.x) * columns, columns, epsilon);
    if (threadIdx.x == 0)
        scales[blockIdx.x] = scale;
}

template<typename Element>
__global__ void weightGradient(int rows, int columns, In<Element> x, In<Element> dy, const float* scales,
                               float* gammaGrad)
{
    sumColumns<float>(
        rows, columns,
        [=](std::int64_t row, std::int64_t column) {
            const std::int64_t at = row * columns + column;
            return dy[at] * (x[at] * scales[row]);
        },
        [=](std::int64_t column, float sum) { gammaGrad[column] += sum; });
}

} // namespace

void run(const Context& context, const RmsNormForward& call)
{
    if (call.rows == 0)
        return;
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        forward<Element><<<unsigned(call.rows), blockSize, 0, context.stream>>>(
            call.columns, call.epsilon, in<Element>(call.input), in<Element>(call.gamma), out<Element>(call.output),
            call.store == Store::Add);
    });
}

void run(const Context& context, const RmsNormInputGrad& call)
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

void run(const Context& context, const RmsNormWeightGrad& call)
{
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        forRowsWithScratch(context, call.rows, 1, [&](int first, int some) {
            const std::int64_t at = std::int64_t(first) * call.columns;
            rowScales<Element><<<unsigned(some), blockSize, 0, context.stream>>>(
                call.columns, call.epsilon, in<Element>(call.input) + at, context.rowScratch.data());
            weightGradient<Element><<<columnBlocks(std::size_t(call.columns)), blockSize, 0, context.stream>>>(
                some, call.columns, in<Element>(call.input) + at, in<Element>(call.outputGrad) + at,
                context.rowScratch.data(), call.gammaGrad.data());
        });
    });
}

} // namespace pipewright::kernels::cuda
