// SPDX-License-Identifier: GPL-3.0-or-later
// One block per row for what a row needs; what columns sum up is in columns.cuh, with the rows' scales in scratch.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"

#include <algorithm>
#include <cassert>

namespace pipewright::kernels::cuda {

namespace {

__device__ float inverseRms(const float* row, int columns, float epsilon)
{
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize)
        squares += row[i] * row[i];
    return rsqrtf(blockSum(squares) / float(columns) + epsilon);
}

__global__ void forward(int columns, float epsilon, const float* x, const float* gamma, float* y, bool add)
{
    const std::size_t at = std::size_t(blockIdx.x) * columns;
    const float scale = inverseRms(x + at, columns, epsilon);
    for (int i = threadIdx.x; i < columns; i += blockSize)
        y[at + i] = (add ? y[at + i] : 0.0f) + gamma[i] * (x[at + i] * scale);
}

/// With g = dy · gamma and r = 1 / rms: dx, or what is added to it, = r · (g - x · r² · mean(g · x)). In place is
/// allowed: a thread reads what it writes before that, and others' only before the barriers of the sums.
__global__ void inputGradient(int columns, float epsilon, const float* x, const float* gamma, const float* dy,
                              float* dx, bool add)
{
    const std::size_t at = std::size_t(blockIdx.x) * columns;
    const float scale = inverseRms(x + at, columns, epsilon);
    float product = 0;
    for (int i = threadIdx.x; i < columns; i += blockSize)
        product += dy[at + i] * gamma[i] * x[at + i];
    const float share = scale * scale * (blockSum(product) / float(columns));
    for (int i = threadIdx.x; i < columns; i += blockSize)
        dx[at + i] = (add ? dx[at + i] : 0.0f) + scale * (dy[at + i] * gamma[i] - x[at + i] * share);
}

__global__ void rowScales(int columns, float epsilon, const float* x, float* scales)
{
    const float scale = inverseRms(x + std::size_t(blockIdx.x) * columns, columns, epsilon);
    if (threadIdx.x == 0)
        scales[blockIdx.x] = scale;
}

__global__ void weightGradient(int rows, int columns, const float* x, const float* dy, const float* scales,
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
    if (call.rows > 0)
        forward<<<unsigned(call.rows), blockSize, 0, context.stream>>>(call.columns, call.epsilon, call.input.data(),
                                                                       call.gamma.data(), call.output.data(),
                                                                       call.store == Store::Add);
}

void run(const Context& context, const RmsNormInputGrad& call)
{
    if (call.rows > 0)
        inputGradient<<<unsigned(call.rows), blockSize, 0, context.stream>>>(
            call.columns, call.epsilon, call.input.data(), call.gamma.data(), call.outputGrad.data(),
            call.inputGrad.data(), call.store == Store::Add);
}

void run(const Context& context, const RmsNormWeightGrad& call)
{
    const int most = int(std::min<std::size_t>(context.rowScratch.size(), std::size_t(call.rows)));
    assert(most > 0 || call.rows == 0);
    for (int first = 0; first < call.rows; first += most) { // once, but for more rows than there is scratch for
        const int some = std::min(most, call.rows - first);
        const std::size_t at = std::size_t(first) * call.columns;
        rowScales<<<unsigned(some), blockSize, 0, context.stream>>>(call.columns, call.epsilon, call.input.data() + at,
                                                                    context.rowScratch.data());
        weightGradient<<<columnBlocks(std::size_t(call.columns)), blockSize, 0, context.stream>>>(
            some, call.columns, call.input.data() + at, call.outputGrad.data() + at, context.rowScratch.data(),
            call.gammaGrad.data());
    }
}

} // namespace pipewright::kernels::cuda
