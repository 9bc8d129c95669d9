// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/spmd/expertmaths.h"

#include "kernels/matmul.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright::spmd {

namespace {

using Gradients = std::vector<HostTensor>;

struct Slots { ///< the dimensions of weights [g, t, e, c]
    std::size_t groups, tokens, experts, capacity;
    explicit Slots(const Shape& shape)
        : groups(static_cast<std::size_t>(shape[0])), tokens(static_cast<std::size_t>(shape[1])),
          experts(static_cast<std::size_t>(shape[2])), capacity(static_cast<std::size_t>(shape[3]))
    {
    }
    std::size_t at(std::size_t g, std::size_t t, std::size_t e, std::size_t c) const
    {
        return ((g * tokens + t) * experts + e) * capacity + c;
    }
    std::size_t slot(std::size_t g, std::size_t e, std::size_t c) const { return (g * experts + e) * capacity + c; }
    /// Calls `work(weight index, token row, slot row)` for every token that has a slot.
    template<typename Work>
    void forEachTaken(const HostTensor& weights, Work work) const
    {
        for (std::size_t g = 0; g < groups; ++g)
            for (std::size_t t = 0; t < tokens; ++t)
                for (std::size_t e = 0; e < experts; ++e)
                    for (std::size_t c = 0; c < capacity; ++c)
                        if (weights.data[at(g, t, e, c)] != 0)
                            work(at(g, t, e, c), g * tokens + t, slot(g, e, c));
    }
};

std::vector<float> probabilities(const float* logits, std::size_t n)
{
    std::vector<float> p(logits, logits + n);
    const float highest = *std::max_element(p.begin(), p.end());
    float sum = 0;
    for (float& value : p)
        sum += value = std::exp(value - highest);
    for (float& value : p)
        value /= sum;
    return p;
}

HostTensor route(const Node& node, const Operands& in, const LocalPart&)
{
    Shape shape = in[0]->shape;
    shape.push_back(node.shape.back());
    HostTensor out(std::move(shape));
    const Slots slots(out.shape);
    const auto chosen = std::min(slots.experts, static_cast<std::size_t>(node.attributes.at("top_k")));
    for (std::size_t g = 0; g < slots.groups; ++g) {
        std::vector<std::size_t> taken(slots.experts, 0);
        for (std::size_t t = 0; t < slots.tokens; ++t) {
            const std::vector<float> p =
                probabilities(in[0]->data.data() + (g * slots.tokens + t) * slots.experts, slots.experts);
            std::vector<std::size_t> order(slots.experts);
            std::iota(order.begin(), order.end(), std::size_t(0));
            std::stable_sort(order.begin(), order.end(), [&p](std::size_t a, std::size_t b) { return p[a] > p[b]; });
            for (std::size_t k = 0; k < chosen; ++k)
                if (const std::size_t e = order[k]; taken[e] < slots.capacity)
                    out.data[slots.at(g, t, e, taken[e]++)] = p[e];
        }
    }
    return out;
}

Gradients routeBack(const Node&, const Operands& in, const HostTensor& result, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape)};
    const Slots slots(result.shape);
    for (std::size_t row = 0; row < slots.groups * slots.tokens; ++row) {
        const std::vector<float> p = probabilities(in[0]->data.data() + row * slots.experts, slots.experts);
        std::vector<float> back(slots.experts, 0.0f);
        float sum = 0;
        for (std::size_t e = 0; e < slots.experts; ++e) {
            for (std::size_t c = 0; c < slots.capacity; ++c)
                if (const std::size_t at = (row * slots.experts + e) * slots.capacity + c; result.data[at] != 0)
                    back[e] += grad.data[at];
            sum += back[e] * p[e];
        }
        for (std::size_t e = 0; e < slots.experts; ++e)
            grads[0].data[row * slots.experts + e] = p[e] * (back[e] - sum);
    }
    return grads;
}

/// to[row a] += factor · from[row b]
void addRow(HostTensor& to, std::size_t a, const HostTensor& from, std::size_t b, float factor)
{
    const auto width = static_cast<std::size_t>(to.shape.back());
    for (std::size_t i = 0; i < width; ++i)
        to.data[a * width + i] += factor * from.data[b * width + i];
}

HostTensor dispatch(const Node&, const Operands& in, const LocalPart&)
{
    const Shape &weights = in[0]->shape, &x = in[1]->shape;
    HostTensor out(Shape{weights[0], weights[2], weights[3], x[2]});
    Slots(weights).forEachTaken(
        *in[0], [&](std::size_t, std::size_t token, std::size_t slot) { addRow(out, slot, *in[1], token, 1); });
    return out;
}

Gradients dispatchBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape), HostTensor(in[1]->shape)};
    Slots(in[0]->shape).forEachTaken(*in[0], [&](std::size_t, std::size_t token, std::size_t slot) {
        addRow(grads[1], token, grad, slot, 1);
    });
    return grads;
}

HostTensor combine(const Node&, const Operands& in, const LocalPart&)
{
    const Shape &weights = in[0]->shape, &y = in[1]->shape;
    HostTensor out(Shape{weights[0], weights[1], y[3]});
    Slots(weights).forEachTaken(*in[0], [&](std::size_t at, std::size_t token, std::size_t slot) {
        addRow(out, token, *in[1], slot, in[0]->data[at]);
    });
    return out;
}

Gradients combineBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape), HostTensor(in[1]->shape)};
    const auto width = static_cast<std::size_t>(in[1]->shape.back());
    Slots(in[0]->shape).forEachTaken(*in[0], [&](std::size_t at, std::size_t token, std::size_t slot) {
        addRow(grads[1], slot, grad, token, in[0]->data[at]);
        for (std::size_t i = 0; i < width; ++i)
            grads[0].data[at] += grad.data[token * width + i] * in[1]->data[slot * width + i];
    });
    return grads;
}

/// Calls `work(first row of x, expert)` with the slots of one expert in one group.
template<typename Work>
void forEachExpert(const Shape& x, Work work)
{
    for (std::size_t g = 0; g < static_cast<std::size_t>(x[0]); ++g)
        for (std::size_t e = 0; e < static_cast<std::size_t>(x[1]); ++e)
            work((g * static_cast<std::size_t>(x[1]) + e) * static_cast<std::size_t>(x[2]), e);
}

template<typename Values>
auto part(Values& values, std::size_t first, std::size_t count)
{
    return std::span(values).subspan(first, count);
}

HostTensor expertLinear(const Node&, const Operands& in, const LocalPart&)
{
    const Shape &x = in[0]->shape, &w = in[1]->shape;
    HostTensor out(Shape{x[0], x[1], x[2], w[1]});
    const auto rows = static_cast<std::size_t>(x[2]), inputs = static_cast<std::size_t>(w[2]),
               outputs = static_cast<std::size_t>(w[1]);
    if (rows * inputs * outputs > 0)
        forEachExpert(x, [&](std::size_t first, std::size_t e) {
            kernels::linearForward({static_cast<int>(rows), static_cast<int>(inputs), static_cast<int>(outputs)},
                                   part(in[0]->data, first * inputs, rows * inputs),
                                   part(in[1]->data, e * inputs * outputs, inputs * outputs), {},
                                   part(out.data, first * outputs, rows * outputs));
        });
    return out;
}

Gradients expertLinearBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    const Shape &x = in[0]->shape, &w = in[1]->shape;
    Gradients grads{HostTensor(x), HostTensor(w)};
    const auto rows = static_cast<std::size_t>(x[2]), inputs = static_cast<std::size_t>(w[2]),
               outputs = static_cast<std::size_t>(w[1]);
    const kernels::LinearShape shape{static_cast<int>(rows), static_cast<int>(inputs), static_cast<int>(outputs)};
    if (rows * inputs * outputs > 0)
        forEachExpert(x, [&](std::size_t first, std::size_t e) {
            const auto gradRows = part(grad.data, first * outputs, rows * outputs);
            kernels::linearInputGrad(shape, gradRows, part(in[1]->data, e * inputs * outputs, inputs * outputs),
                                     part(grads[0].data, first * inputs, rows * inputs));
            kernels::linearWeightGrad(shape, part(in[0]->data, first * inputs, rows * inputs), gradRows,
                                      part(grads[1].data, e * inputs * outputs, inputs * outputs), {});
        });
    return grads;
}

constexpr NodeMaths table[] = {
    {"route", route, routeBack},
    {"dispatch", dispatch, dispatchBack},
    {"expert_linear", expertLinear, expertLinearBack},
    {"combine", combine, combineBack},
};

} // namespace

std::span<const NodeMaths> expertMaths()
{
    return table;
}

} // namespace pipewright::spmd
