// SPDX-License-Identifier: GPL-3.0-or-later
// The three passes of a linear layer as one product of OpenBLAS each, with the bias added before and its gradient
// summed after: 2 · rows · inputs · outputs operations.
#include "kernels/calls.h"

#include "kernels/host/gemm.h"
#include "kernels/host/simd.h"

#include <algorithm>
#include <cassert>

namespace pipewright::kernels {
namespace {

void addBias(int rows, std::span<const float> bias, Store store, float* output)
{
    const std::size_t columns = bias.size();
    for (int row = 0; row < rows; ++row, output += columns) {
        if (store == Store::Replace)
            std::copy(bias.begin(), bias.end(), output);
        else
            for (std::size_t column = 0; column < columns; ++column)
                output[column] += bias[column];
    }
}

/// sums += column sums, a block of columns at a time so that running sums stay in registers; each column
/// is summed over its rows first and then added once.
PIPEWRIGHT_VECTOR_CLONES
void addColumnSums(int rows, std::size_t columns, const float* values, float* sums)
{
    constexpr std::size_t width = 64;
    std::size_t begin = 0;
    for (; begin + width <= columns; begin += width) {
        float block[width] = {};
        for (int row = 0; row < rows; ++row)
            for (std::size_t i = 0; i < width; ++i)
                block[i] += values[std::size_t(row) * columns + begin + i];
        for (std::size_t i = 0; i < width; ++i)
            sums[begin + i] += block[i];
    }
    for (; begin < columns; ++begin) {
        float sum = 0;
        for (int row = 0; row < rows; ++row)
            sum += values[std::size_t(row) * columns + begin];
        sums[begin] += sum;
    }
}

} // namespace

void run(const LinearForward& call)
{
    const auto& [shape, input, weight, bias, output, store, activated, bf16] = call;
    const auto [rows, inputs, outputs] = shape;
    assert(input.size() == std::size_t(rows) * inputs && weight.size() == std::size_t(outputs) * inputs);
    assert(output.size() == std::size_t(rows) * outputs);
    assert(bias.empty() || bias.size() == std::size_t(outputs));
    if (!bias.empty())
        addBias(rows, bias, store, output.data());
    const bool keep = store == Store::Add || !bias.empty();
    gemm(rows, outputs, inputs, 1, {input.data(), inputs}, {weight.data(), inputs, true}, keep ? 1.0f : 0.0f,
         output.data(), outputs);
    if (!activated.empty())
        run(ActivationForward{ActivationKind::GeluTanh, output, activated});
}

void run(const LinearInputGrad& call)
{
    const auto& [shape, outputGrad, weight, inputGrad, store, activationInput, bf16] = call;
    const auto [rows, inputs, outputs] = shape;
    assert(outputGrad.size() == std::size_t(rows) * outputs && weight.size() == std::size_t(outputs) * inputs);
    assert(inputGrad.size() == std::size_t(rows) * inputs);
    gemm(rows, inputs, outputs, 1, {outputGrad.data(), outputs}, {weight.data(), inputs},
         store == Store::Add ? 1.0f : 0.0f, inputGrad.data(), inputs);
    if (!activationInput.empty())
        run(ActivationInputGrad{ActivationKind::GeluTanh, activationInput, inputGrad, inputGrad});
}

void run(const LinearWeightGrad& call)
{
    const auto& [shape, input, outputGrad, weightGrad, biasGrad, bf16] = call;
    const auto [rows, inputs, outputs] = shape;
    assert(input.size() == std::size_t(rows) * inputs && outputGrad.size() == std::size_t(rows) * outputs);
    assert(weightGrad.size() == std::size_t(outputs) * inputs);
    assert(biasGrad.empty() || biasGrad.size() == std::size_t(outputs));
    gemm(outputs, inputs, rows, 1, {outputGrad.data(), outputs, true}, {input.data(), inputs}, 1, weightGrad.data(),
         inputs);
    if (!biasGrad.empty())
        addColumnSums(rows, std::size_t(outputs), outputGrad.data(), biasGrad.data());
}

bool concurrentProductsAreSafe()
{
    return openblas_get_parallel() != 0;
}

} // namespace pipewright::kernels
