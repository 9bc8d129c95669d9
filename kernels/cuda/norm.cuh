// SPDX-License-Identifier: GPL-3.0-or-later
// Shared by the two norms. A norm provides a type Row: Row::of(x, columns, epsilon), computed by all threads of a
// block, normalised(value), scale, and whether it centres rows. Results per row use one block per row; sums over
// columns use columns.cuh, with the rows' statistics in scratch.
#pragma once

#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/stored.cuh"

namespace pipewright::kernels::cuda {

/// With g = dy · gamma and n the normalised row: dx = (or +=, with `add`) scale · (g - n · mean(g · n)), minus scale ·
/// mean(g) if the norm centres rows. In place is allowed: a thread reads an element before it writes it, and reads
/// elements of other threads only before the barriers of the sums.
template<typename Row, typename Element>
__global__ void normInputGradient(int columns, float epsilon, In<Element> x, In<Element> gamma, In<Element> dy,
                                  Out<Element> dx, bool add)
{
    const std::int64_t at = std::int64_t(blockIdx.x) * columns;
    const Row row = Row::of(x + at, columns, epsilon);
    float grad = 0, product = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const float g = dy[at + i] * gamma[i];
        grad += g;
        product += g * row.normalised(x[at + i]);
    }
    float meanGrad = 0;
    if constexpr (Row::centres)
        meanGrad = blockSum(grad) / float(columns);
    const float meanProduct = blockSum(product) / float(columns);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        dx[at + i] = (add ? float(dx[at + i]) : 0.0f)
                     + row.scale * (dy[at + i] * gamma[i] - meanGrad - row.normalised(x[at + i]) * meanProduct);
}

template<typename Row, typename Element>
__global__ void normStatistics(int columns, float epsilon, In<Element> x, Row* rows)
{
    const Row row = Row::of(x + std::int64_t(blockIdx.x) * columns, columns, epsilon);
    if (threadIdx.x == 0)
        rows[blockIdx.x] = row;
}

template<typename Row, typename Call>
void runNormInputGradient(const Context& context, const Call& call)
{
    if (call.rows == 0)
        return;
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        normInputGradient<Row, Element>
            <<<unsigned(call.rows), threadsForRow(std::size_t(call.columns)), 0, context.stream>>>(
                call.columns, call.epsilon, in<Element>(call.input), in<Element>(call.gamma),
                in<Element>(call.outputGrad), out<Element>(call.inputGrad), call.store == Store::Add);
    });
}

/// Calls sum(number of rows, inputs, output gradients, statistics) for chunks of rows; it launches the sums over
/// columns.
template<typename Row, typename Call, typename Sum>
void runNormWeightGradient(const Context& context, const Call& call, Sum sum)
{
    auto* const statistics = reinterpret_cast<Row*>(context.rowScratch.data());
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        forRowsWithScratch(context, call.rows, sizeof(Row) / sizeof(float), [&](int first, int some) {
            const std::int64_t at = std::int64_t(first) * call.columns;
            normStatistics<Row, Element>
                <<<unsigned(some), threadsForRow(std::size_t(call.columns)), 0, context.stream>>>(
                    call.columns, call.epsilon, in<Element>(call.input) + at, statistics);
            sum(some, in<Element>(call.input) + at, in<Element>(call.outputGrad) + at, statistics);
        });
    });
}

} // namespace pipewright::kernels::cuda
