// SPDX-License-Identifier: GPL-3.0-or-later
// A block per row: largest value, sum and division, O(rows · classes) work; then one block adds the rows' losses.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stored.cuh"

namespace pipewright::kernels::cuda {

namespace {

__global__ void softmaxRows(int classes, float* values, const std::int32_t* targets, float* rowLoss)
{
    float* row = values + std::size_t(blockIdx.x) * classes;
    const bool counts = targets[blockIdx.x] >= 0;
    const float target = counts ? row[targets[blockIdx.x]] : 0.0f;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < classes; i += blockDim.x)
        largest = fmaxf(largest, row[i]);
    largest = blockMax(largest); // also a barrier: all threads have read `target` before it is overwritten
    float sum = 0;
    for (int i = threadIdx.x; i < classes; i += blockDim.x) {
        row[i] = expf(row[i] - largest);
        sum += row[i];
    }
    sum = blockSum(sum);
    for (int i = threadIdx.x; i < classes; i += blockDim.x)
        row[i] /= sum;
    if (threadIdx.x == 0)
        rowLoss[blockIdx.x] = counts ? largest + logf(sum) - target : 0.0f;
}

__global__ void sumRows(int rows, const float* rowLoss, float scale, float* loss)
{
    double sum = 0;
    for (int row = int(threadIdx.x); row < rows; row += int(blockDim.x))
        sum += rowLoss[row];
    sum = blockSum(sum);
    if (threadIdx.x == 0)
        loss[0] = float(sum * scale);
}

template<typename Element>
__global__ void gradient(std::size_t count, int classes, const float* probabilities, const std::int32_t* targets,
                         float scale, Out<Element> grad)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockSize + threadIdx.x;
    if (i < count) {
        const std::int32_t target = targets[i / classes];
        grad[i] = (target < 0 ? 0.0f : scale * probabilities[i]) - (int(i % classes) == target ? scale : 0.0f);
    }
}

} // namespace

void run(const Context& context, const CrossEntropyForward& call)
{
    const auto [rows, classes, logitsToProbabilities, targets, scale, loss] = call;
    if (rows > 0)
        softmaxRows<<<unsigned(rows), threadsForRow(std::size_t(classes)), 0, context.stream>>>(
            classes, logitsToProbabilities.data(), targets.data(), context.rowScratch.data());
    sumRows<<<1, threadsForRow(std::size_t(rows)), 0, context.stream>>>(rows, context.rowScratch.data(), scale,
                                                                        loss.data());
}

void run(const Context& context, const CrossEntropyInputGrad& call)
{
    if (call.logitsGrad.empty())
        return;
    withElement(context, 0, [&](auto element) {
        gradient<<<blocksFor(call.logitsGrad.size()), blockSize, 0, context.stream>>>(
            call.logitsGrad.size(), call.classes, call.probabilities.data(), call.targets.data(), call.scale,
            out<decltype(element)>(call.logitsGrad));
    });
}

} // namespace pipewright::kernels::cuda
