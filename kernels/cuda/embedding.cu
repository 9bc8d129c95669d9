// SPDX-License-Identifier: GPL-3.0-or-later
// A thread per element; only the table's gradient has a block for each token, of which the first of every word adds up
// those of its like.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"

namespace pipewright::kernels::cuda {

namespace {

__global__ void forward(std::size_t count, int length, int hidden, const std::int32_t* tokens, const float* table,
                        const float* positions, float* output)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockSize + threadIdx.x;
    if (i >= count)
        return;
    const std::size_t token = i / hidden, column = i % hidden;
    output[i] = table[std::size_t(tokens[token]) * hidden + column]
                + (positions ? positions[token % length * hidden + column] : 0.0f);
}

__global__ void tableGradient(std::size_t count, int hidden, const std::int32_t* tokens, const float* grad,
                              float* tableGrad)
{
    sumByKey(
        std::int64_t(count), hidden, [=](std::int64_t token) { return std::int64_t(tokens[token]); },
        [=](std::int64_t token, std::int64_t column) { return grad[token * hidden + column]; }, tableGrad);
}

/// `each`: the elements of the positions' gradient; all sequences, in order.
__global__ void positionsGradient(std::size_t count, std::size_t each, const float* grad, float* positionsGrad)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockSize + threadIdx.x;
    if (i >= each)
        return;
    float sum = 0;
    for (std::size_t at = i; at < count; at += each)
        sum += grad[at];
    positionsGrad[i] += sum;
}

} // namespace

void run(const Context& context, const EmbeddingForward& call)
{
    const auto [length, hidden, tokens, table, positions, output] = call;
    if (!output.empty())
        forward<<<blocksFor(output.size()), blockSize, 0, context.stream>>>(
            output.size(), length, hidden, tokens.data(), table.data(), positions.data(), output.data());
}

void run(const Context& context, const EmbeddingWeightGrad& call)
{
    const auto [length, hidden, tokens, outputGrad, tableGrad, positionsGrad] = call;
    if (outputGrad.empty())
        return;
    tableGradient<<<keyBlocks(tokens.size(), std::size_t(hidden)), blockSize, 0, context.stream>>>(
        tokens.size(), hidden, tokens.data(), outputGrad.data(), tableGrad.data());
    if (positionsGrad.empty())
        return;
    const std::size_t each = std::size_t(length) * hidden;
    positionsGradient<<<blocksFor(each), blockSize, 0, context.stream>>>(outputGrad.size(), each, outputGrad.data(),
                                                                         positionsGrad.data());
}

} // namespace pipewright::kernels::cuda
