// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per item, except for sums over one or many rows, which a warp or a block shares.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/stored.cuh"
#include "kernels/tensoritems.h"

#include <cassert>
#include <cmath>

namespace pipewright::kernels::cuda {

namespace {

/// One thread per item; neighbouring threads are neighbours in the inner dimension.
template<TensorOperation operation>
__global__ void eachItem(TensorCall call, std::int64_t count, std::int64_t inner)
{
    const std::int64_t item = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (item < count)
        TensorItem<operation>::run(call, item / inner, item % inner, item % inner + 1);
}

constexpr std::int64_t longRow = 1024; ///< rows from this length on have a block

/// The threads of a row. Each handles every `threads`-th element, so that reads are coalesced; the order of the sums
/// depends only on `threads`.
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

/// The same results as the items in tensoritems.h, except for the order of the sums.
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

/// Sums over rows, for each column; as the items in tensoritems.h, except for the order of the sums.
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

/// Adds rows of a gradient to the rows of a table that tokens or features name.
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

/// A call for a bag of features as a tensor operation.
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

// For bf16 values: the operations that layers use, with the same order of sums.

__global__ void sumRepeatedOfStored(std::int64_t rows, std::int64_t columns, In<Bf16> values, float* sums)
{
    sumColumns<float>(
        rows, columns, [=](std::int64_t row, std::int64_t column) { return values[row * columns + column]; },
        [=](std::int64_t column, float sum) { sums[column] += sum; });
}

__global__ void bagGradientOfStored(std::int64_t count, std::int64_t columns, int length, float scale,
                                    const std::int32_t* features, In<Bf16> grad, float* tableGrad)
{
    sumByKey(
        count, columns, [=](std::int64_t feature) { return std::int64_t(features[feature]); },
        [=](std::int64_t feature, std::int64_t column) { return scale * grad[feature / length * columns + column]; },
        tableGrad);
}

In<Bf16> storedIn(const float* values)
{
    return {reinterpret_cast<const Bf16*>(values)};
}

void runStored(const Context& context, const TensorCall& call)
{
    const std::size_t count = std::size_t(call.size[0]), period = std::size_t(call.size[1]);
    const In<Bf16> a = storedIn(call.in[0]), b = storedIn(call.in[1]);
    const Out<Bf16> to{reinterpret_cast<Bf16*>(call.out)};
    if (call.operation == TensorOperation::Scale)
        launchEach(context, count,
                   [=, number = call.number] __device__(std::size_t i) { to[std::int64_t(i)] = number * a[i]; });
    else if (call.operation == TensorOperation::AddRepeated)
        launchEach(context, count, [=] __device__(std::size_t i) { to[std::int64_t(i)] = a[i] + b[i % period]; });
    else if (count > 0 && period > 0) // SumRepeated
        sumRepeatedOfStored<<<columnBlocks(period), blockSize, 0, context.stream>>>(std::int64_t(count / period),
                                                                                    std::int64_t(period), a, call.out);
}

} // namespace

bool hasStored(TensorOperation operation)
{
    return operation == TensorOperation::Scale || operation == TensorOperation::AddRepeated
           || operation == TensorOperation::SumRepeated;
}

void run(const Context& context, const TensorCall& call)
{
    if (context.stored != 0) {
        assert(hasStored(call.operation));
        runStored(context, call);
        return;
    }
    switch (call.operation) {
#define PIPEWRIGHT_CASE(name)                                                                                          \
    case TensorOperation::name: launchAll<TensorOperation::name>(context.stream, call); break;
        PIPEWRIGHT_TENSOR_OPERATIONS(PIPEWRIGHT_CASE)
#undef PIPEWRIGHT_CASE
    }
}

void run(const Context& context, const FeatureBagForward& call)
{
    if (context.stored == 0) {
        run(context, bagOf(TensorOperation::FeatureBag, call, call.table, call.output));
        return;
    }
    launchEach(context, call.output.size(),
               [scale = 1 / std::sqrt(float(call.length)), length = std::size_t(call.length),
                width = std::size_t(call.hidden), features = call.features.data(), table = in<Bf16>(call.table),
                to = out<Bf16>(call.output)] __device__(std::size_t i) {
                   float sum = 0;
                   for (std::size_t k = 0; k < length; ++k)
                       sum += table[std::int64_t(features[i / width * length + k]) * std::int64_t(width)
                                    + std::int64_t(i % width)];
                   to[std::int64_t(i)] = scale * sum;
               });
}

void run(const Context& context, const FeatureBagWeightGrad& call)
{
    if (context.stored == 0)
        run(context, bagOf(TensorOperation::FeatureBagGrad, call, call.outputGrad, call.tableGrad));
    else if (!call.features.empty())
        bagGradientOfStored<<<keyBlocks(call.features.size(), std::size_t(call.hidden)), blockSize, 0,
                              context.stream>>>(std::int64_t(call.features.size()), call.hidden, call.length,
                                                1 / std::sqrt(float(call.length)), call.features.data(),
                                                in<Bf16>(call.outputGrad), call.tableGrad.data());
}

} // namespace pipewright::kernels::cuda
