// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of kernels/tensors.h on the GPU, each against its items done one by one on the host; part of gpucheck.
#pragma once

#include "gpu/check.h"
#include "kernels/cuda/kernels.h"
#include "kernels/tensoritems.h"

#include <memory>

namespace pipewright::test {

template<kernels::TensorOperation operation>
void checkTensor(const char* name, std::vector<std::int64_t> sizes, std::vector<std::vector<float>> inputs,
                 std::size_t outputs, std::vector<std::int32_t> whole = {})
{
    using Item = kernels::TensorItem<operation>;
    const std::vector<float> before = single(someValues(outputs, 99));
    kernels::TensorCall call{};
    call.operation = operation;
    call.number = 0.5f;
    std::copy(sizes.begin(), sizes.end(), call.size);
    const bool routes = operation == kernels::TensorOperation::Route; // starts from zeros
    const std::vector<float> start = routes ? std::vector<float>(outputs, 0.0f) : before;
    const std::size_t counters = routes ? std::size_t(sizes[0] * sizes[2]) : 1;
    std::vector<float> expected = start, counted(counters, 0.0f);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        call.in[i] = inputs[i].empty() ? nullptr : inputs[i].data();
    call.out = expected.data();
    call.scratch = counted.data();
    call.whole = whole.data();
    const kernels::TensorItems items = Item::count(call);
    for (std::int64_t o = 0; o < items.outer; ++o)
        Item::run(call, o, 0, items.inner);
    check(name, Values(expected.begin(), expected.end()), sumError, [&] {
        std::vector<std::unique_ptr<Floats>> there;
        kernels::TensorCall onGpu = call;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            onGpu.in[i] =
                inputs[i].empty() ? nullptr : there.emplace_back(std::make_unique<Floats>(inputs[i]))->span().data();
        Floats out(start), scratch(std::vector<float>(counters, 0.0f));
        onGpu.out = out.span().data();
        Memory<std::int32_t> numbers(whole);
        onGpu.scratch = scratch.span().data();
        onGpu.whole = numbers.span().data();
        kernels::cuda::run({}, onGpu);
        return out.read();
    });
}

inline void checkTensors()
{
    using enum kernels::TensorOperation;
    const std::int64_t rows = small ? 20 : 70, columns = 130, all = rows * columns;
    const auto some = [](std::int64_t count, int seed) { return single(someValues(std::size_t(count), seed)); };
    const std::vector<float> x = some(all, 1), y = some(all, 2), perRow = some(rows, 3), perColumn = some(columns, 4);
    checkTensor<CopyBlocks>("copy blocks", {rows, 60, columns, 60}, {x}, std::size_t(rows * 60));
    checkTensor<Scale>("scale", {all}, {x}, x.size());
    checkTensor<Add>("add", {all}, {x, y}, x.size());
    checkTensor<Multiply>("multiply", {all}, {x, y}, x.size());
    checkTensor<Relu>("relu", {all}, {x}, x.size());
    checkTensor<ReluGrad>("relu grad", {all}, {x, y}, x.size());
    checkTensor<Sigmoid>("sigmoid", {all}, {x}, x.size());
    checkTensor<FillFrom>("fill from", {all}, {perRow}, x.size());
    checkTensor<ScaleBy>("scale by", {all}, {x, perRow}, x.size());
    checkTensor<AddRepeated>("add repeated", {all, columns}, {x, perColumn}, x.size());
    checkTensor<SumRepeated>("sum repeated", {all, columns}, {x}, std::size_t(columns));
    checkTensor<SumParts>("sum in parts", {all - 30, 64}, {x}, 64);
    checkTensor<SumParts>("sum", {64, 1}, {x}, 1);
    checkTensor<RowLogSum>("log of sums of rows", {rows, columns}, {x}, std::size_t(rows));
    checkTensor<RowDot>("products of rows", {rows, columns}, {x, y}, std::size_t(rows));
    checkTensor<RowDot>("sums of rows", {rows, columns}, {x, {}}, std::size_t(rows));
    const std::int64_t few = 3, wide = 5003; // a row is a block's
    checkTensor<RowLogSum>("log of sums of long rows", {few, wide}, {some(few * wide, 5)}, std::size_t(few));
    checkTensor<RowDot>("products of long rows", {few, wide}, {some(few * wide, 5), some(few * wide, 6)},
                        std::size_t(few));
    checkTensor<Softmax>("softmax", {rows, columns}, {x, perRow}, x.size());
    checkTensor<SoftmaxGrad>("softmax grad", {rows, columns}, {x, y, perRow}, x.size());
    checkTensor<LogSoftmax>("log softmax", {rows, columns}, {x, perRow}, x.size());
    checkTensor<LogSoftmaxGrad>("log softmax grad", {rows, columns}, {x, y, perRow}, x.size());
    std::vector<float> tokens;
    for (const std::int32_t token : someTokens(rows, 50, 5))
        tokens.push_back(float(token));
    check("whole numbers", Values(tokens.begin(), tokens.end()), 0, [&] {
        Floats from(tokens);
        Memory<std::int32_t> to(tokens.size());
        kernels::TensorCall call{};
        call.operation = WholeNumbers;
        call.size[0] = rows;
        call.in[0] = from.span().data();
        call.whole = to.span().data();
        kernels::cuda::run({}, call);
        return to.read();
    });
    checkTensor<LookUp>("look up", {rows, columns, 10, 30}, {tokens, some(30 * columns, 6)}, x.size());
    checkTensor<LookUpGrad>("look up grad", {rows, columns, 10, 30}, {tokens, y}, std::size_t(30 * columns));
    // Of more columns than a block of threads has, and of more tokens.
    const std::int64_t wideColumns = 1100, manyTokens = small ? 280 : 700;
    checkTensor<LookUpGrad>("look up grad, wide", {rows, wideColumns, 10, 30}, {tokens, some(rows * wideColumns, 15)},
                            std::size_t(30 * wideColumns));
    std::vector<float> many;
    for (const std::int32_t token : someTokens(std::size_t(manyTokens), 20, 16))
        many.push_back(float(token));
    checkTensor<LookUpGrad>("look up grad, long", {manyTokens, 3, 10, 30}, {many, some(manyTokens * 3, 17)},
                            std::size_t(30 * 3));
    std::vector<std::int32_t> features = someTokens(std::size_t(rows * 7), 40, 13);
    checkTensor<FeatureBag>("bag of features", {rows, columns, 7}, {some(40 * columns, 14)}, x.size(), features);
    checkTensor<FeatureBagGrad>("bag of features grad", {rows, columns, 7}, {y}, std::size_t(40 * columns), features);
    const std::int64_t groups = 3, group = 17, experts = 5, capacity = 6, width = 40;
    std::vector<float> weights = some(groups * group * experts * capacity, 8);
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = i % 3 == 0 ? weights[i] : 0.0f; // slots that are taken
    const std::vector<float> likely = some(groups * group * experts, 9),
                             slots = some(groups * experts * capacity * width, 10),
                             here = some(groups * group * width, 11);
    std::vector<std::int32_t> choices(std::size_t(groups * group * 2));
    for (std::size_t i = 0; i < choices.size(); ++i) // two of each token
        choices[i] = std::int32_t((i / 2 + i % 2 * (1 + i / 2 % 3)) % std::size_t(experts));
    checkTensor<Visits>("visits of experts", {groups, group, experts, capacity}, {weights}, likely.size());
    for (const std::int64_t weighting : {0, 1, 2, 3}) {
        checkTensor<Route>("route", {groups, group, experts, capacity, 2, weighting}, {likely}, weights.size(),
                           choices);
        checkTensor<RouteGrad>("route grad", {groups, group, experts, capacity, 0, weighting},
                               {weights, likely, some(std::int64_t(weights.size()), 12)}, likely.size());
    }
    checkTensor<Dispatch>("dispatch", {groups, group, experts, capacity, width}, {weights, here}, slots.size());
    checkTensor<DispatchGrad>("dispatch grad", {groups, group, experts, capacity, width}, {weights, slots},
                              here.size());
    checkTensor<Combine>("combine", {groups, group, experts, capacity, width}, {weights, slots}, here.size());
    checkTensor<CombineSlotsGrad>("combine slots grad", {groups, group, experts, capacity, width}, {weights, here},
                                  slots.size());
    checkTensor<CombineWeightsGrad>("combine weights grad", {groups, group, experts, capacity, width},
                                    {weights, here, slots}, weights.size());
}

} // namespace pipewright::test
