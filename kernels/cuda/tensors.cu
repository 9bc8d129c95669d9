// SPDX-License-Identifier: GPL-3.0-or-later
// An item has one thread; only what sums over a row or over many rows shares the work among a warp's or a block's.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/tensoritems.h"

#include <cmath>

namespace pipewright::kernels::cuda {

namespace {

/// One thread per item, neighbours in the inner dimension.
template<TensorOperation operation>
__global__ void eachItem(TensorCall call, std::int64_t count, std::int64_t inner)
{
    const std::int64_t item = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (item < count)
        TensorItem<operation>::run(call, item / inner, item % inner, item % inner + 1);
}

constexpr std::int64_t longRow = 1024; ///< from here on a row has a block

/// A row's threads, each with every so-many-th element, so that neighbours read neighbours; the order of the sums
/// depends on their number alone.
template<unsigned threads>
struct Team {
    int lane = int(threadIdx.x % threads);

    template<typename Value>
    __device__ float sum(std::int64_t columns, Value value) const
    {
        float own = 0;
        for (std::int64_t i = lane; i < columns; i += threads)
            own += value(i);
        return threads == 32 ? warpSum(own) : blockSum(own);
    }
    __device__ float highest(std::int64_t columns, const float* row) const
    {
        float own = -INFINITY;
        for (std::int64_t i = lane; i < columns; i += threads)
            own = fmaxf(own, row[i]);
        return threads == 32 ? warpMax(own) : blockMax(own);
    }
};

/// The same as their items in tensoritems.h, but for the order of the sums.
template<TensorOperation operation, unsigned threads>
__global__ void eachRow(TensorCall call)
{
    const Team<threads> team;
    const std::int64_t o = std::int64_t(blockIdx.x) * (blockSize / threads) + threadIdx.x / threads,
                       columns = call.size[1];
    if (o >= call.size[0])
        return;
    const float* row = call.in[0] + o * columns;
    float result = 0;
    if constexpr (operation == TensorOperation::RowLogSum) {
        const float highest = team.highest(columns, row);
        result = highest + logf(team.sum(columns, [=](std::int64_t i) { return expf(row[i] - highest); }));
    } else {
        static_assert(operation == TensorOperation::RowDot);
        const float* factors = call.in[1] ? call.in[1] + o * columns : nullptr;
        result = team.sum(columns, [=](std::int64_t i) { return row[i] * (factors ? factors[i] : 1.0f); });
    }
    if (team.lane == 0)
        call.out[o] = result;
}

/// Sums over rows, for each column; the order of the sums apart the same as their items in tensoritems.h.
template<TensorOperation operation>
__global__ void eachColumn(TensorCall call, std::int64_t rows, std::int64_t columns)
{
    const float* x = call.in[0];
    if constexpr (operation == TensorOperation::SumRepeated) {
        sumColumns<float>(
            rows, columns, [=](std::int64_t row, std::int64_t column) { return x[row * columns + column]; },
            [=](std::int64_t column, float sum) { call.out[column] += sum; });
    } else {
        static_assert(operation == TensorOperation::SumParts);
        sumColumns<double>(
            rows, columns,
            [=](std::int64_t row, std::int64_t column) {
                const std::int64_t i = row * columns + column; // the last row may be a shorter one
                return i < call.size[0] ? double(x[i]) : 0.0;
            },
            [=](std::int64_t column, double sum) { call.out[column] = float(sum); });
    }
}

/// Rows of a gradient, each to the row of a table that a token or a feature names.
template<TensorOperation operation>
__global__ void eachKey(TensorCall call, std::int64_t count)
{
    const std::int64_t columns = call.size[1];
    if constexpr (operation == TensorOperation::LookUpGrad) {
        const float *tokens = call.in[0], *grad = call.in[1];
        sumByKey(
            count, columns,
            [=](std::int64_t token) {
                const std::int64_t row = std::int64_t(tokens[token]) - call.size[2];
                return row >= 0 && row < call.size[3] ? row : -1;
            },
            [=](std::int64_t token, std::int64_t column) { return grad[token * columns + column]; }, call.out);
    } else {
        static_assert(operation == TensorOperation::FeatureBagGrad);
        const std::int32_t* features = call.whole;
        const float* grad = call.in[0];
        sumByKey(
            count, columns, [=](std::int64_t feature) { return std::int64_t(features[feature]); },
            [=](std::int64_t feature, std::int64_t column) {
                return call.number * grad[feature / call.size[2] * columns + column];
            },
            call.out);
    }
}

template<TensorOperation operation>
void launchColumns(cudaStream_t stream, const TensorCall& call)
{
    const std::int64_t columns = call.size[1]; // sums
    if (columns > 0)
        eachColumn<operation><<<columnBlocks(std::size_t(columns)), blockSize, 0, stream>>>(
            call, (call.size[0] + columns - 1) / columns, columns);
}

template<TensorOperation operation>
void launchKeys(cudaStream_t stream, const TensorCall& call)
{
    const std::int64_t count =
        operation == TensorOperation::FeatureBagGrad ? call.size[0] * call.size[2] : call.size[0];
    if (count > 0 && call.size[1] > 0)
        eachKey<operation>
            <<<keyBlocks(std::size_t(count), std::size_t(call.size[1])), blockSize, 0, stream>>>(call, count);
}

template<TensorOperation operation>
void launchRows(cudaStream_t stream, const TensorCall& call)
{
    const std::int64_t rows = call.size[0];
    if (rows == 0)
        return;
    if (call.size[1] < longRow)
        eachRow<operation, 32><<<blocksFor(std::size_t(rows) * 32), blockSize, 0, stream>>>(call);
    else
        eachRow<operation, blockSize><<<unsigned(rows), blockSize, 0, stream>>>(call);
}

template<TensorOperation operation>
void launchAll(cudaStream_t stream, const TensorCall& call)
{
    using enum TensorOperation;
    if constexpr (operation == RowLogSum || operation == RowDot) {
        launchRows<operation>(stream, call);
    } else if constexpr (operation == SumRepeated || operation == SumParts) {
        launchColumns<operation>(stream, call);
    } else if constexpr (operation == LookUpGrad || operation == FeatureBagGrad) {
        launchKeys<operation>(stream, call);
    } else {
        const TensorItems items = TensorItem<operation>::count(call);
        const std::int64_t count = items.outer * items.inner;
        if (count > 0)
            eachItem<operation><<<blocksFor(std::size_t(count)), blockSize, 0, stream>>>(call, count, items.inner);
    }
}

/// The call of a bag of features as that of an operation on tensors.
template<typename Bag>
TensorCall bagOf(TensorOperation operation, const Bag& bag, std::span<const float> in, std::span<float> out)
{
    TensorCall call{};
    call.operation = operation;
    call.number = 1 / std::sqrt(float(bag.length));
    call.size[0] = std::int64_t(bag.features.size()) / bag.length;
    call.size[1] = bag.hidden;
    call.size[2] = bag.length;
    call.in[0] = in.data();
    call.out = out.data();
    call.whole = const_cast<std::int32_t*>(bag.features.data()); // read only
    return call;
}

} // namespace

void run(const Context& context, const TensorCall& call)
{
    switch (call.operation) {
#define PIPEWRIGHT_CASE(name)                                                                                          \
    case TensorOperation::name: launchAll<TensorOperation::name>(context.stream, call); break;
        PIPEWRIGHT_TENSOR_OPERATIONS(PIPEWRIGHT_CASE)
#undef PIPEWRIGHT_CASE
    }
}

void run(const Context& context, const FeatureBagForward& call)
{
    run(context, bagOf(TensorOperation::FeatureBag, call, call.table, call.output));
}

void run(const Context& context, const FeatureBagWeightGrad& call)
{
    run(context, bagOf(TensorOperation::FeatureBagGrad, call, call.outputGrad, call.tableGrad));
}

} // namespace pipewright::kernels::cuda
