// SPDX-License-Identifier: GPL-3.0-or-later
// Forward: a thread per element. Backward: a thread per column walks all tokens, so sums have one order and need no
// atomics; O(tokens · hidden) work, but only `hidden` threads.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"

namespace pipewright::kernels::cuda {

namespace {

__global__ void forward(std::size_t count, int length, int hidden, const std::int32_t* tokens, const float* table,
                        const float* positions, float* output)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockSize + threadIdx.x;
    if (i >= count)
        return;
    const std::size_t token = i / hidden, column = i % hidden;
    output[i] = table[std::size_t(tokens[token]) * hidden + column] + positions[token % length * hidden + column];
}

/// A thread owns a column and walks the tokens in order: two tokens of one word never add at the same time.
__global__ void weightGradient(std::size_t count, int length, int hidden, const std::int32_t* tokens, const float* grad,
                               float* tableGrad, float* positionsGrad)
{
    const int column = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (column >= hidden)
        return;
    for (std::size_t t = 0; t < count; ++t) {
        const float g = grad[t * hidden + column];
        tableGrad[std::size_t(tokens[t]) * hidden + column] += g;
        positionsGrad[t % length * hidden + column] += g;
    }
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
    constexpr unsigned columns = 32; // more blocks rather than larger ones: this is bound by latency
    weightGradient<<<(unsigned(hidden) + columns - 1) / columns, columns, 0, context.stream>>>(
        tokens.size(), length, hidden, tokens.data(), outputGrad.data(), tableGrad.data(), positionsGrad.data());
}

} // namespace pipewright::kernels::cuda
