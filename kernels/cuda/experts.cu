// SPDX-License-Identifier: GPL-3.0-or-later
// Copies of tokens to and from their experts, a thread per element, and the products of all experts in one launch, in
// tiles of 64 x 64 (experts.cuh). In fp32, without tensor cores.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/experts.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/stored.cuh"
#include "kernels/cuda/tiles.cuh"

namespace pipewright::kernels::cuda {

namespace {

/// output[rows][columns] = or += input[rows][terms] · factor, whose column c and term t lie at c · column + t · term.
/// Blocks: tiles of columns, tiles of rows.
__global__ void rowProducts(ExpertsShape shape, const std::int32_t* begin, const float* input, int terms,
                            const float* weight, std::int64_t column, std::int64_t term, const float* bias,
                            std::int64_t biasStride, int columns, bool add, float* output)
{
    __shared__ Strip strips[2];
    const RowTile of = rowTile(shape.experts, begin, int(blockIdx.y), tile);
    if (of.expert < 0)
        return; // uniform over the block
    const int firstColumn = int(blockIdx.x) * tile;
    float square[own][own] = {};
    addProduct(square, {input + std::int64_t(of.begin) * terms, terms, 1, of.rows}, of.first,
               {weight + of.expert * shape.stride, column, term, columns}, firstColumn, terms, strips);
    for (int i = 0; i < own; ++i)
        for (int j = 0; j < own; ++j) {
            const int row = of.first + ownRow(i), to = firstColumn + ownColumn(j);
            if (row >= of.rows || to >= columns)
                continue;
            float& result = output[(std::int64_t(of.begin) + row) * columns + to];
            result = (add ? result : bias ? bias[of.expert * biasStride + to] : 0.0f) + square[i][j];
        }
}

/// weightGrad[outputs][inputs] += the sum over an expert's rows. Blocks: tiles of inputs, tiles of outputs, experts.
__global__ void weightProducts(ExpertsShape shape, const std::int32_t* begin, const float* input,
                               const float* outputGrad, float* weightGrad)
{
    __shared__ Strip strips[2];
    const int expert = int(blockIdx.z), first = int(blockIdx.y) * tile, firstInput = int(blockIdx.x) * tile;
    const std::int64_t row = begin[expert], rows = begin[expert + 1] - row;
    float square[own][own] = {};
    addProduct(square, {outputGrad + row * shape.outputs, 1, shape.outputs, shape.outputs}, first,
               {input + row * shape.inputs, 1, shape.inputs, shape.inputs}, firstInput, rows, strips);
    for (int i = 0; i < own; ++i)
        for (int j = 0; j < own; ++j)
            if (const int o = first + ownRow(i), to = firstInput + ownColumn(j); o < shape.outputs && to < shape.inputs)
                weightGrad[expert * shape.stride + std::int64_t(o) * shape.inputs + to] += square[i][j];
}

/// biasGrad += the sums of an expert's rows. Blocks: columns, experts.
template<typename Element>
__global__ void biasGradient(ExpertsShape shape, const std::int32_t* begin, In<Element> outputGrad, float* biasGrad,
                             std::int64_t biasStride)
{
    const int expert = int(blockIdx.y);
    const In<Element> from = outputGrad + std::int64_t(begin[expert]) * shape.outputs;
    float* const to = biasGrad + expert * biasStride;
    const std::int64_t outputs = shape.outputs;
    sumColumns<float>(
        begin[expert + 1] - begin[expert], outputs,
        [=](std::int64_t row, std::int64_t column) { return from[row * outputs + column]; },
        [=](std::int64_t column, float sum) { to[column] += sum; });
}

template<typename Element>
void copyToExperts(const Context& context, const CopyToExperts& call)
{
    launchEach(context, call.output.size(),
               [width = std::size_t(call.width), each = std::size_t(call.perToken), row = call.row.data(),
                weight = call.weight.empty() ? nullptr : call.weight.data(), from = in<Element>(call.input),
                to = out<Element>(call.output)] __device__(std::size_t i) {
                   const std::size_t copy = i / width, column = i % width;
                   to[std::size_t(row[copy]) * width + column] =
                       (weight ? weight[copy] : 1.0f) * from[copy / each * width + column];
               });
}

template<typename Element>
void sumOfExperts(const Context& context, const SumOfExperts& call)
{
    launchEach(context, call.output.size(),
               [width = std::size_t(call.width), each = std::size_t(call.perToken), row = call.row.data(),
                weight = call.weight.empty() ? nullptr : call.weight.data(), from = in<Element>(call.input),
                to = out<Element>(call.output), add = call.store == Store::Add] __device__(std::size_t i) {
                   const std::size_t token = i / width, column = i % width;
                   float sum = add ? float(to[i]) : 0.0f;
                   for (std::size_t copy = token * each; copy < (token + 1) * each; ++copy)
                       sum += (weight ? weight[copy] : 1.0f) * from[std::size_t(row[copy]) * width + column];
                   to[i] = sum;
               });
}

} // namespace

void run(const Context& context, const CopyToExperts& call)
{
    withElement(context, 0, [&](auto element) { copyToExperts<decltype(element)>(context, call); });
}

void run(const Context& context, const SumOfExperts& call)
{
    withElement(context, 0, [&](auto element) { sumOfExperts<decltype(element)>(context, call); });
}

void run(const Context& context, const ExpertsForward& call)
{
    const ExpertsShape& shape = call.shape;
    const std::size_t copies = call.input.size() / std::size_t(shape.inputs);
    if (copies == 0)
        return;
    const dim3 blocks(tilesOf(shape.outputs), rowTilesOf(copies, shape.experts, tile));
    if (call.bf16.exact)
        launchOnTensorCores(context, call);
    else
        rowProducts<<<blocks, blockSize, 0, context.stream>>>(
            shape, call.begin.data(), call.input.data(), shape.inputs, call.weight.data(), shape.inputs, 1,
            call.bias.empty() ? nullptr : call.bias.data(), call.biasStride, shape.outputs, false, call.output.data());
}

void run(const Context& context, const ExpertsInputGrad& call)
{
    const ExpertsShape& shape = call.shape;
    const std::size_t copies = call.outputGrad.size() / std::size_t(shape.outputs);
    if (copies == 0)
        return;
    const dim3 blocks(tilesOf(shape.inputs), rowTilesOf(copies, shape.experts, tile));
    if (call.bf16.exact)
        launchOnTensorCores(context, call);
    else
        rowProducts<<<blocks, blockSize, 0, context.stream>>>(
            shape, call.begin.data(), call.outputGrad.data(), shape.outputs, call.weight.data(), 1, shape.inputs,
            nullptr, 0, shape.inputs, call.store == Store::Add, call.inputGrad.data());
}

void run(const Context& context, const ExpertsWeightGrad& call)
{
    const ExpertsShape& shape = call.shape;
    const dim3 blocks(tilesOf(shape.inputs), tilesOf(shape.outputs), unsigned(shape.experts));
    if (call.bf16.exact)
        launchOnTensorCores(context, call);
    else
        weightProducts<<<blocks, blockSize, 0, context.stream>>>(shape, call.begin.data(), call.input.data(),
                                                                 call.outputGrad.data(), call.weightGrad.data());
    if (!call.biasGrad.empty())
        withElement(context, 1, [&](auto element) {
            biasGradient<<<dim3(columnBlocks(std::size_t(shape.outputs)), unsigned(shape.experts)), blockSize, 0,
                           context.stream>>>(shape, call.begin.data(), in<decltype(element)>(call.outputGrad),
                                             call.biasGrad.data(), call.biasStride);
        });
}

} // namespace pipewright::kernels::cuda
