// SPDX-License-Identifier: GPL-3.0-or-later
// The computation of each operation of tensors.h: `count` gives its number of items, outer times inner, and `run`
// computes the items [begin, end) of one outer index. Items are independent, so they may run in any order; sums within
// an item have a fixed order. Compiled for the host and, by nvcc, for GPUs, where sums over a row or over rows have an
// order of their own.
#pragma once

#include "kernels/linearbiases.h"
#include "kernels/tensors.h"

#include <cmath>

namespace pipewright::kernels {

struct TensorItems {
    std::int64_t outer = 0, inner = 0;
};

template<TensorOperation>
struct TensorItem;

#define PIPEWRIGHT_ITEM(name, outerCount, innerCount)                                                                  \
    template<>                                                                                                         \
    struct TensorItem<TensorOperation::name> {                                                                         \
        PIPEWRIGHT_BOTH static TensorItems count([[maybe_unused]] const TensorCall& c)                                 \
        {                                                                                                              \
            return {(outerCount), (innerCount)};                                                                       \
        }                                                                                                              \
        PIPEWRIGHT_BOTH static void run(const TensorCall& c, std::int64_t o, std::int64_t begin, std::int64_t end);    \
    };                                                                                                                 \
    PIPEWRIGHT_BOTH inline void TensorItem<TensorOperation::name>::run(                                                \
        [[maybe_unused]] const TensorCall& c, [[maybe_unused]] std::int64_t o, [[maybe_unused]] std::int64_t begin,    \
        [[maybe_unused]] std::int64_t end)

/// Elementwise operations: out[i] for i below size[0].
#define PIPEWRIGHT_EACH(name, value)                                                                                   \
    PIPEWRIGHT_ITEM(name, 1, c.size[0])                                                                                \
    {                                                                                                                  \
        [[maybe_unused]] const float *a = c.in[0], *b = c.in[1];                                                       \
        for (std::int64_t i = begin; i < end; ++i)                                                                     \
            c.out[i] = (value);                                                                                        \
    }

PIPEWRIGHT_BOTH inline float sigmoidOf(float x)
{
    return 1 / (1 + expf(-x));
}

// size: blocks, elements per block, distance between blocks in `in`, and in `out`.
PIPEWRIGHT_ITEM(CopyBlocks, c.size[0], c.size[1])
{
    const float* from = c.in[0] + o * c.size[2];
    float* to = c.out + o * c.size[3];
    for (std::int64_t i = begin; i < end; ++i)
        to[i] = from[i];
}

// size: elements.
PIPEWRIGHT_EACH(Scale, c.number* a[i])
PIPEWRIGHT_EACH(Add, a[i] + b[i])
PIPEWRIGHT_EACH(Multiply, a[i] * b[i])
PIPEWRIGHT_EACH(Relu, a[i] > 0 ? a[i] : 0.0f)
PIPEWRIGHT_EACH(ReluGrad, a[i] > 0 ? b[i] : 0.0f)
PIPEWRIGHT_EACH(Sigmoid, sigmoidOf(a[i]))
PIPEWRIGHT_EACH(FillFrom, a[0])
PIPEWRIGHT_EACH(ScaleBy, a[i] * b[0])
// size: elements; elements of the second operand, which is repeated.
PIPEWRIGHT_EACH(AddRepeated, a[i] + b[i % c.size[1]])

PIPEWRIGHT_ITEM(WholeNumbers, 1, c.size[0])
{
    for (std::int64_t i = begin; i < end; ++i)
        c.whole[i] = static_cast<std::int32_t>(c.in[0][i]);
}

// size: elements, sums. Adds to `out`.
PIPEWRIGHT_ITEM(SumRepeated, 1, c.size[1])
{
    for (std::int64_t first = 0; first < c.size[0]; first += c.size[1])
        for (std::int64_t i = begin; i < end; ++i)
            c.out[i] += c.in[0][first + i];
}

// size: elements, sums. Sum o is over the elements o, o + size[1], ….
PIPEWRIGHT_ITEM(SumParts, c.size[1], 1)
{
    double sum = 0;
    for (std::int64_t i = o; i < c.size[0]; i += c.size[1])
        sum += static_cast<double>(c.in[0][i]);
    c.out[o] = static_cast<float>(sum);
}

// size: rows, columns. The logarithm of the sum of a row's exponentials.
PIPEWRIGHT_ITEM(RowLogSum, c.size[0], 1)
{
    const float* row = c.in[0] + o * c.size[1];
    float highest = row[0], sum = 0;
    for (std::int64_t i = 1; i < c.size[1]; ++i)
        highest = row[i] > highest ? row[i] : highest;
    for (std::int64_t i = 0; i < c.size[1]; ++i)
        sum += expf(row[i] - highest);
    c.out[o] = highest + logf(sum);
}
// The sum over a row of the first operand, times the second where there is one.
PIPEWRIGHT_ITEM(RowDot, c.size[0], 1)
{
    const std::int64_t first = o * c.size[1];
    float sum = 0;
    for (std::int64_t i = 0; i < c.size[1]; ++i)
        sum += c.in[0][first + i] * (c.in[1] ? c.in[1][first + i] : 1.0f);
    c.out[o] = sum;
}

/// size: rows, columns; `at` is the element and `i` its column.
#define PIPEWRIGHT_ROWS(name, value)                                                                                   \
    PIPEWRIGHT_ITEM(name, c.size[0], c.size[1])                                                                        \
    {                                                                                                                  \
        [[maybe_unused]] const float *x = c.in[0], *y = c.in[1], *z = c.in[2];                                         \
        for (std::int64_t i = begin; i < end; ++i) {                                                                   \
            const std::int64_t at = o * c.size[1] + i;                                                                 \
            c.out[at] = (value);                                                                                       \
        }                                                                                                              \
    }
// Operands: the input and its RowLogSum.
PIPEWRIGHT_ROWS(Softmax, expf(x[at] - y[o]))
PIPEWRIGHT_ROWS(LogSoftmax, x[at] - y[o])
// Operands: the result, its gradient, and RowDot of both (SoftmaxGrad) or of the gradient alone (LogSoftmaxGrad).
PIPEWRIGHT_ROWS(SoftmaxGrad, x[at] * (y[at] - z[o]))
PIPEWRIGHT_ROWS(LogSoftmaxGrad, y[at] - expf(x[at]) * z[o])
// size: tokens, width, the table's first row, its rows. Operands: tokens and table; zeros for rows outside this part of
// the table.
PIPEWRIGHT_ITEM(LookUp, c.size[0], c.size[1])
{
    const std::int64_t row = static_cast<std::int64_t>(c.in[0][o]) - c.size[2];
    const bool here = row >= 0 && row < c.size[3];
    for (std::int64_t i = begin; i < end; ++i)
        c.out[o * c.size[1] + i] = here ? c.in[1][row * c.size[1] + i] : 0.0f;
}
// Operands: tokens and the result's gradient; adds to the table's.
PIPEWRIGHT_ITEM(LookUpGrad, 1, c.size[1])
{
    for (std::int64_t token = 0; token < c.size[0]; ++token) {
        const std::int64_t row = static_cast<std::int64_t>(c.in[0][token]) - c.size[2];
        if (row >= 0 && row < c.size[3])
            for (std::int64_t i = begin; i < end; ++i)
                c.out[row * c.size[1] + i] += c.in[1][token * c.size[1] + i];
    }
}

// size: rows, width, features of a row. Operand: the table. The sum over a row's features, scaled.
PIPEWRIGHT_ITEM(FeatureBag, c.size[0], c.size[1])
{
    const std::int32_t* features = c.whole + o * c.size[2];
    for (std::int64_t i = begin; i < end; ++i) {
        float sum = 0;
        for (std::int64_t f = 0; f < c.size[2]; ++f)
            sum += c.in[0][features[f] * c.size[1] + i];
        c.out[o * c.size[1] + i] = sum * c.number;
    }
}
// Operand: the result's gradient; adds to the table's.
PIPEWRIGHT_ITEM(FeatureBagGrad, 1, c.size[1])
{
    for (std::int64_t f = 0; f < c.size[0] * c.size[2]; ++f)
        for (std::int64_t i = begin; i < end; ++i)
            c.out[c.whole[f] * c.size[1] + i] += c.number * c.in[0][f / c.size[2] * c.size[1] + i];
}

// Mixtures of experts. size: groups, tokens per group, experts, slots per expert, width of a token.
struct Slots {
    std::int64_t tokens, experts, capacity, width;
    PIPEWRIGHT_BOTH explicit Slots(const TensorCall& c)
        : tokens(c.size[1]), experts(c.size[2]), capacity(c.size[3]), width(c.size[4])
    {
    }
    PIPEWRIGHT_BOTH std::int64_t weight(std::int64_t group, std::int64_t token, std::int64_t slot) const
    {
        return (group * tokens + token) * experts * capacity + slot;
    }
    PIPEWRIGHT_BOTH std::int64_t slots() const { return experts * capacity; }
};

// size[4]: number of experts that a token chooses. A copy's weight is its expert's probability times `number`; with
// size[5] 1 or 3 it is divided by the sum of the probabilities of all experts that the token's copies found a slot at.
// Operands: the experts' probabilities and the choices; `out` and `scratch` are zeros.
PIPEWRIGHT_ITEM(Route, c.size[0], 1)
{
    const Slots is(c);
    float* taken = c.scratch + o * is.experts;
    for (std::int64_t token = o * is.tokens; token < (o + 1) * is.tokens; ++token) {
        float sum = 0;
        for (std::int64_t k = 0; k < c.size[4]; ++k) {
            const std::int64_t expert = c.whole[token * c.size[4] + k];
            if (expert < 0 || !(taken[expert] < float(is.capacity)))
                continue;
            const float p = c.in[0][token * is.experts + expert];
            c.out[is.weight(0, token, expert * is.capacity + std::int64_t(taken[expert]))] = p;
            taken[expert] += 1;
            sum += p;
        }
        const float share = c.size[5] % 2 == 1 ? c.number / sum : c.number;
        for (std::int64_t k = 0; k < c.size[4] && sum > 0; ++k) {
            // The last slot that was taken is this token's, or it is empty for this token.
            const std::int64_t expert = c.whole[token * c.size[4] + k];
            if (expert >= 0 && taken[expert] > 0)
                c.out[is.weight(0, token, expert * is.capacity + std::int64_t(taken[expert]) - 1)] *= share;
        }
    }
}
// Operands: weights, probabilities and the weights' gradient; `number` and size[5] as of Route. With size[5] 2 or 3
// each probability is the sigmoid of its own logit, else they are a softmax.
PIPEWRIGHT_ITEM(RouteGrad, c.size[0] * c.size[1], 1)
{
    const Slots is(c);
    const float* p = c.in[1] + o * is.experts;
    float* out = c.out + o * is.experts;
    const bool shares = c.size[5] % 2 == 1, sigmoids = c.size[5] >= 2;
    float sum = 0; // of the gradients, each times the share of its copy
    for (std::int64_t e = 0; e < is.experts; ++e) {
        float back = 0, weight = 0;
        for (std::int64_t at = (o * is.experts + e) * is.capacity; at < (o * is.experts + e + 1) * is.capacity; ++at) {
            back += c.in[0][at] != 0 ? c.in[2][at] : 0.0f;
            weight += c.in[0][at];
        }
        out[e] = back;
        sum += shares ? back * weight / c.number : sigmoids ? 0.0f : back * p[e];
    }
    for (std::int64_t e = 0; e < is.experts; ++e) {
        float weight = shares ? 0.0f : c.number * p[e];
        for (std::int64_t at = (o * is.experts + e) * is.capacity;
             shares && at < (o * is.experts + e + 1) * is.capacity; ++at)
            weight += c.in[0][at];
        out[e] = weight * (out[e] - sum) * (sigmoids ? 1 - p[e] : 1.0f);
    }
}
// Operand: weights. For every token and expert whether a copy of the token visits it: 1 or 0.
PIPEWRIGHT_ITEM(Visits, c.size[0] * c.size[1], c.size[2])
{
    const Slots is(c);
    for (std::int64_t e = begin; e < end; ++e) {
        float visits = 0;
        for (std::int64_t at = (o * is.experts + e) * is.capacity; at < (o * is.experts + e + 1) * is.capacity; ++at)
            visits = c.in[0][at] != 0 ? 1.0f : visits;
        c.out[o * is.experts + e] = visits;
    }
}

/// Operands: weights and tokens. Every slot's token, weighted if `weighed`.
PIPEWRIGHT_BOTH inline void fillSlot(const TensorCall& c, std::int64_t o, std::int64_t begin, std::int64_t end,
                                     bool weighed)
{
    const Slots is(c);
    const std::int64_t group = o / is.slots();
    for (std::int64_t i = begin; i < end; ++i)
        c.out[o * is.width + i] = 0;
    for (std::int64_t token = 0; token < is.tokens; ++token)
        if (const float weight = c.in[0][is.weight(group, token, o % is.slots())]; weight != 0)
            for (std::int64_t i = begin; i < end; ++i)
                c.out[o * is.width + i] +=
                    (weighed ? weight : 1.0f) * c.in[1][(group * is.tokens + token) * is.width + i];
}
/// Operands: weights and slots. For every token the sum of its slots.
PIPEWRIGHT_BOTH inline void gatherSlots(const TensorCall& c, std::int64_t o, std::int64_t begin, std::int64_t end,
                                        bool weighed)
{
    const Slots is(c);
    const std::int64_t group = o / is.tokens;
    for (std::int64_t i = begin; i < end; ++i)
        c.out[o * is.width + i] = 0;
    for (std::int64_t slot = 0; slot < is.slots(); ++slot)
        if (const float weight = c.in[0][o * is.slots() + slot]; weight != 0)
            for (std::int64_t i = begin; i < end; ++i)
                c.out[o * is.width + i] +=
                    (weighed ? weight : 1.0f) * c.in[1][(group * is.slots() + slot) * is.width + i];
}
PIPEWRIGHT_ITEM(Dispatch, c.size[0] * c.size[2] * c.size[3], c.size[4])
{
    fillSlot(c, o, begin, end, false);
}
PIPEWRIGHT_ITEM(DispatchGrad, c.size[0] * c.size[1], c.size[4])
{
    gatherSlots(c, o, begin, end, false);
}
PIPEWRIGHT_ITEM(Combine, c.size[0] * c.size[1], c.size[4])
{
    gatherSlots(c, o, begin, end, true);
}
PIPEWRIGHT_ITEM(CombineSlotsGrad, c.size[0] * c.size[2] * c.size[3], c.size[4])
{
    fillSlot(c, o, begin, end, true);
}
// Operands: weights, the tokens' gradients and slots.
PIPEWRIGHT_ITEM(CombineWeightsGrad, c.size[0] * c.size[1] * c.size[2] * c.size[3], 1)
{
    const Slots is(c);
    const std::int64_t token = o / is.slots(), slot = token / is.tokens * is.slots() + o % is.slots();
    float sum = 0;
    if (c.in[0][o] != 0)
        for (std::int64_t i = 0; i < is.width; ++i)
            sum += c.in[1][token * is.width + i] * c.in[2][slot * is.width + i];
    c.out[o] = sum;
}

#undef PIPEWRIGHT_EACH
#undef PIPEWRIGHT_ROWS
#undef PIPEWRIGHT_ITEM

} // namespace pipewright::kernels
