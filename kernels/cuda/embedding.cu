// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per element. Only the table's gradient has a block per token: the first token of every word adds up the
// gradients of all its occurrences.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/stored.cuh"

namespace pipewright::kernels::cuda {

namespace {

template<typename Element>
__global__ void forward(std::size_t count, int length, int hidden, const std::int32_t* tokens, In<Element> table,
                        In<Element> positions, Out<Element> output)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockSize + threadIdx.x;
    if (i >= count)
        return;
    const std::size_t token = i / hidden, column = i % hidden;
    output[i] = table[std::size_t(tokens[token]) * hidden + column]
                + (positions ? positions[token % length * hidden + column] : 0.0f);
}

template<typename Element>
__global__ void tableGradient(std::size_t count, int hidden, const std::int32_t* tokens, In<Element> grad,
                              float* tableGrad)
{
    sumByKey(
        std::int64_t(count), hidden, [=](std::int64_t token) { return std::int64_t(tokens[token]); },
        [=](std::int64_t token, std::int64_t column) { return grad[token * hidden + column]; }, tableGrad);
}

/// `each`: the elements of the positions' gradient; all sequences, in order.
template<typename Element>
__global__ void positionsGradient(std::size_t count, std::size_t each, In<Element> grad, float* positionsGrad)
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
    if (call.output.empty())
        return;
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        forward<Element><<<blocksFor(call.output.size()), blockSize, 0, context.stream>>>(
            call.output.size(), call.length, call.hidden, call.tokens.data(), in<Element>(call.table),
            in<Element>(call.positions), out<Element>(call.output));
    });
}

void run(const Context& context, const EmbeddingWeightGrad& call)
{
    if (call.outputGrad.empty())
        return;
    const std::size_t each = std::size_t(call.length) * std::size_t(call.hidden);
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        const In<Element> grad = in<Element>(call.outputGrad);
        tableGradient<Element>
            <<<keyBlocks(call.tokens.size(), std::size_t(call.hidden)), blockSize, 0, context.stream>>>(
                call.tokens.size(), call.hidden, call.tokens.data(), grad, call.tableGrad.data());
        if (!call.positionsGrad.empty())
            positionsGradient<Element><<<blocksFor(each), blockSize, 0, context.stream>>>(
                call.outputGrad.size(), each, grad, call.positionsGrad.data());
    });
}

} // namespace pipewright::kernels::cuda
