// SPDX-License-Identifier: GPL-3.0-or-later
// Products of all experts in one launch, of bf16 values on tensor cores. cuBLASLt would need the number of rows of each
// expert, which the host does not know without waiting for the GPU. A block has a square of 128 x 128 results: eight
// warps of 32 x 64. Factors pass through shared memory, 64 terms at a time; in memory they are bf16, or fp32 with
// values that are exact in bf16. Sums are fp32 and in the order of their terms.
#include "kernels/cuda/experts.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stored.cuh"
#include "kernels/cuda/tensorcores.cuh"

namespace pipewright::kernels::cuda {

namespace {

constexpr int side = 128, terms = 64, pairs = terms / 2;      // of a block's square; of a slice
constexpr int warpRows = 32, warpColumns = 64, downwards = 4; // warps per column of the square
constexpr int leftParts = warpRows / 16, rightParts = warpColumns / 8;
static_assert(downwards * warpRows == side && int(blockSize) / 32 / downwards * warpColumns == side);

/// One factor of a product: term t of line l is values[l · line + t · term]. Lines from `lines` on are zeros.
template<typename Value>
struct Lines {
    const Value* values;
    std::int64_t line, term;
    int lines;
};

/// A slice of a factor's terms. The pad of four words avoids bank conflicts.
using Slice = std::uint32_t[side][pairs + 4];

__device__ std::uint32_t pairOf(float first, float second)
{
    return bf16Pair(first, second);
}

__device__ std::uint32_t pairOf(std::uint16_t first, std::uint16_t second)
{
    return std::uint32_t(first) | std::uint32_t(second) << 16;
}

/// Coalesced for both layouts of the factor.
template<typename Value>
__device__ void load(Slice& to, const Lines<Value>& from, int firstLine, std::int64_t firstTerm, std::int64_t count)
{
    const bool alongTerms = from.term == 1;
    for (int i = int(threadIdx.x); i < side * pairs; i += int(blockSize)) {
        const int line = alongTerms ? i / pairs : i % side, pair = alongTerms ? i % pairs : i / side;
        const std::int64_t term = firstTerm + 2 * pair;
        const std::int64_t have = firstLine + line < from.lines ? count : 0;
        const Value* const at = from.values + (firstLine + line) * from.line + term * from.term;
        to[line][pair] = pairOf(term < have ? at[0] : Value{}, term + 1 < have ? at[from.term] : Value{});
    }
}

/// A warp's part of a square. Calls take(line of the left factor, line of the right factor, sum) for each of a lane's
/// results.
struct Square {
    float sums[leftParts][rightParts][4] = {};

    __device__ static int firstRow() { return int(threadIdx.x) / 32 % downwards * warpRows; }
    __device__ static int firstColumn() { return int(threadIdx.x) / 32 / downwards * warpColumns; }

    __device__ void addSlice(const Slice& left, const Slice& right)
    {
#pragma unroll
        for (int step = 0; step < terms / 16; ++step) {
            const int word = step * 8 + laneColumn() / 2;
            std::uint32_t rows[leftParts][4];
#pragma unroll
            for (int part = 0; part < leftParts; ++part)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    rows[part][i] = left[firstRow() + part * 16 + laneRow() + i % 2 * 8][word + i / 2 * 4];
#pragma unroll
            for (int n = 0; n < rightParts; ++n) {
                const std::uint32_t* const line = right[firstColumn() + n * 8 + laneRow()] + word;
                const std::uint32_t column[2] = {line[0], line[4]};
#pragma unroll
                for (int part = 0; part < leftParts; ++part)
                    multiplyInWarp(sums[part][n], rows[part], column);
            }
        }
    }

    template<typename Take>
    __device__ void forResults(Take take) const
    {
#pragma unroll
        for (int part = 0; part < leftParts; ++part)
#pragma unroll
            for (int n = 0; n < rightParts; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    take(firstRow() + part * 16 + laneRow() + i / 2 * 8, firstColumn() + n * 8 + laneColumn() + i % 2,
                         sums[part][n][i]);
    }
};

template<typename Value>
__device__ void addProduct(Square& square, const Lines<Value>& left, int firstRow, const Lines<Value>& right,
                           int firstColumn, std::int64_t count, Slice* slices)
{
    for (std::int64_t term = 0; term < count; term += terms) {
        __syncthreads(); // the previous contents of the slices have been read
        load(slices[0], left, firstRow, term, count);
        load(slices[1], right, firstColumn, term, count);
        __syncthreads();
        square.addSlice(slices[0], slices[1]);
    }
}

/// output[rows][columns] = or += input[rows][terms] · factor, whose column c and term t lie at c · column + t · term.
/// Blocks: tiles of columns, tiles of rows.
template<typename Value, typename Element>
__global__ void tensorRowProducts(ExpertsShape shape, const std::int32_t* begin, const Value* input, int count,
                                  const Value* weight, std::int64_t column, std::int64_t term, In<Element> bias,
                                  std::int64_t biasStride, int columns, bool add, Out<Element> output)
{
    __shared__ Slice slices[2];
    const RowTile of = rowTile(shape.experts, begin, int(blockIdx.y), side);
    if (of.expert < 0)
        return; // as all threads of the block do
    const int firstColumn = int(blockIdx.x) * side;
    Square square;
    addProduct<Value>(square, {input + std::int64_t(of.begin) * count, count, 1, of.rows}, of.first,
                      {weight + of.expert * shape.stride, column, term, columns}, firstColumn, count, slices);
    square.forResults([&](int line, int other, float sum) {
        const int row = of.first + line, to = firstColumn + other;
        if (row >= of.rows || to >= columns)
            return;
        const auto result = output[(std::int64_t(of.begin) + row) * columns + to];
        result = (add ? float(result) : bias ? bias[of.expert * biasStride + to] : 0.0f) + sum;
    });
}

/// weightGrad[outputs][inputs] += the sum over an expert's rows. Blocks: tiles of inputs, tiles of outputs, experts.
template<typename Value>
__global__ void tensorWeightProducts(ExpertsShape shape, const std::int32_t* begin, const Value* input,
                                     const Value* outputGrad, float* weightGrad)
{
    __shared__ Slice slices[2];
    const int expert = int(blockIdx.z), first = int(blockIdx.y) * side, firstInput = int(blockIdx.x) * side;
    const std::int64_t row = begin[expert], rows = begin[expert + 1] - row;
    if (rows == 0)
        return; // as all threads of the block do
    Square square;
    addProduct<Value>(square, {outputGrad + row * shape.outputs, 1, shape.outputs, shape.outputs}, first,
                      {input + row * shape.inputs, 1, shape.inputs, shape.inputs}, firstInput, rows, slices);
    square.forResults([&](int line, int other, float sum) {
        if (const int o = first + line, i = firstInput + other; o < shape.outputs && i < shape.inputs)
            weightGrad[expert * shape.stride + std::int64_t(o) * shape.inputs + i] += sum;
    });
}

unsigned squaresOf(int lines)
{
    return unsigned((lines + side - 1) / side);
}

/// Calls launch(left factor, right factor) with their stored types.
template<typename Launch>
void withFactors(const Bf16Factors& bf16, const float* left, const float* right, Launch launch)
{
    if (bf16.areStored())
        launch(bf16.left, bf16.right);
    else
        launch(left, right);
}

} // namespace

void launchOnTensorCores(const Context& context, const ExpertsForward& call)
{
    const ExpertsShape& shape = call.shape;
    const dim3 blocks(squaresOf(shape.outputs),
                      rowTilesOf(call.input.size() / std::size_t(shape.inputs), shape.experts, side));
    withFactors(call.bf16, call.input.data(), call.weight.data(), [&](const auto* input, const auto* weight) {
        withElement(context, 0, [&](auto element) {
            using Element = decltype(element);
            tensorRowProducts<<<blocks, blockSize, 0, context.stream>>>(
                shape, call.begin.data(), input, shape.inputs, weight, shape.inputs, 1,
                call.bias.empty() ? In<Element>() : in<Element>(call.bias), call.biasStride, shape.outputs, false,
                out<Element>(call.output));
        });
    });
}

void launchOnTensorCores(const Context& context, const ExpertsInputGrad& call)
{
    const ExpertsShape& shape = call.shape;
    const dim3 blocks(squaresOf(shape.inputs),
                      rowTilesOf(call.outputGrad.size() / std::size_t(shape.outputs), shape.experts, side));
    withFactors(call.bf16, call.outputGrad.data(), call.weight.data(), [&](const auto* grad, const auto* weight) {
        withElement(context, 0, [&](auto element) {
            using Element = decltype(element);
            tensorRowProducts<<<blocks, blockSize, 0, context.stream>>>(
                shape, call.begin.data(), grad, shape.outputs, weight, 1, shape.inputs, In<Element>(), 0, shape.inputs,
                call.store == Store::Add, out<Element>(call.inputGrad));
        });
    });
}

void launchOnTensorCores(const Context& context, const ExpertsWeightGrad& call)
{
    const ExpertsShape& shape = call.shape;
    const dim3 blocks(squaresOf(shape.inputs), squaresOf(shape.outputs), unsigned(shape.experts));
    withFactors(call.bf16, call.input.data(), call.outputGrad.data(), [&](const auto* input, const auto* grad) {
        tensorWeightProducts<<<blocks, blockSize, 0, context.stream>>>(shape, call.begin.data(), input, grad,
                                                                       call.weightGrad.data());
    });
}

} // namespace pipewright::kernels::cuda
