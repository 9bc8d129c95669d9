// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/spmd/plainmaths.h"

#include <algorithm>
#include <cmath>

namespace pipewright::spmd {

namespace {

using Gradients = std::vector<HostTensor>;

constexpr float rmsNormEpsilon = 1e-5f;

template<typename Function>
HostTensor mapped(const HostTensor& in, Function function)
{
    HostTensor out(in.shape);
    std::transform(in.data.begin(), in.data.end(), out.data.begin(), function);
    return out;
}

template<typename Function>
HostTensor mapped(const HostTensor& a, const HostTensor& b, Function function)
{
    HostTensor out(a.shape);
    std::transform(a.data.begin(), a.data.end(), b.data.begin(), out.data.begin(), function);
    return out;
}

float sigmoid(float x)
{
    return 1 / (1 + std::exp(-x));
}

HostTensor add(const Node&, const Operands& in, const LocalPart&)
{
    return mapped(*in[0], *in[1], std::plus<float>());
}
Gradients addBack(const Node&, const Operands&, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    return {grad, grad};
}

HostTensor multiply(const Node&, const Operands& in, const LocalPart&)
{
    return mapped(*in[0], *in[1], std::multiplies<float>());
}
Gradients multiplyBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    return {mapped(grad, *in[1], std::multiplies<float>()), mapped(grad, *in[0], std::multiplies<float>())};
}

HostTensor scale(const Node& node, const Operands& in, const LocalPart&)
{
    const auto factor = static_cast<float>(node.attributes.at("factor"));
    return mapped(*in[0], [factor](float x) { return factor * x; });
}
Gradients scaleBack(const Node& node, const Operands&, const HostTensor&, const HostTensor& grad, const LocalPart& part)
{
    return {scale(node, {&grad}, part)};
}

HostTensor relu(const Node&, const Operands& in, const LocalPart&)
{
    return mapped(*in[0], [](float x) { return x > 0 ? x : 0; });
}
Gradients reluBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    return {mapped(*in[0], grad, [](float x, float g) { return x > 0 ? g : 0; })};
}

HostTensor silu(const Node&, const Operands& in, const LocalPart&)
{
    return mapped(*in[0], [](float x) { return x * sigmoid(x); });
}
Gradients siluBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    return {mapped(*in[0], grad, [](float x, float g) { return g * sigmoid(x) * (1 + x * (1 - sigmoid(x))); })};
}

/// Calls `work(first element, columns)` for every row.
template<typename Row>
void forEachRow(const HostTensor& tensor, Row work)
{
    const auto columns = static_cast<std::size_t>(tensor.shape.back());
    for (std::size_t first = 0; first < tensor.elements(); first += columns)
        work(first, columns);
}

void softmaxRow(const float* in, float* out, std::size_t n)
{
    const float highest = *std::max_element(in, in + n);
    float sum = 0;
    for (std::size_t i = 0; i < n; ++i)
        sum += out[i] = std::exp(in[i] - highest);
    for (std::size_t i = 0; i < n; ++i)
        out[i] /= sum;
}

HostTensor softmax(const Node&, const Operands& in, const LocalPart&)
{
    HostTensor out(in[0]->shape);
    forEachRow(out,
               [&](std::size_t at, std::size_t n) { softmaxRow(in[0]->data.data() + at, out.data.data() + at, n); });
    return out;
}
Gradients softmaxBack(const Node&, const Operands&, const HostTensor& result, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(grad.shape)};
    forEachRow(grad, [&](std::size_t at, std::size_t n) {
        float sum = 0;
        for (std::size_t i = at; i < at + n; ++i)
            sum += grad.data[i] * result.data[i];
        for (std::size_t i = at; i < at + n; ++i)
            grads[0].data[i] = result.data[i] * (grad.data[i] - sum);
    });
    return grads;
}

HostTensor logSoftmax(const Node& node, const Operands& in, const LocalPart& part)
{
    return mapped(softmax(node, in, part), [](float p) { return std::log(p); });
}
Gradients logSoftmaxBack(const Node&, const Operands&, const HostTensor& result, const HostTensor& grad,
                         const LocalPart&)
{
    Gradients grads{HostTensor(grad.shape)};
    forEachRow(grad, [&](std::size_t at, std::size_t n) {
        float sum = 0;
        for (std::size_t i = at; i < at + n; ++i)
            sum += grad.data[i];
        for (std::size_t i = at; i < at + n; ++i)
            grads[0].data[i] = grad.data[i] - std::exp(result.data[i]) * sum;
    });
    return grads;
}

float inverseRms(const float* row, std::size_t n)
{
    float sum = 0;
    for (std::size_t i = 0; i < n; ++i)
        sum += row[i] * row[i];
    return 1 / std::sqrt(sum / static_cast<float>(n) + rmsNormEpsilon);
}

HostTensor rmsNorm(const Node&, const Operands& in, const LocalPart&)
{
    HostTensor out(in[0]->shape);
    forEachRow(out, [&](std::size_t at, std::size_t n) {
        const float inverse = inverseRms(in[0]->data.data() + at, n);
        for (std::size_t i = 0; i < n; ++i)
            out.data[at + i] = in[0]->data[at + i] * inverse * in[1]->data[i];
    });
    return out;
}
Gradients rmsNormBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape), HostTensor(in[1]->shape)};
    forEachRow(grad, [&](std::size_t at, std::size_t n) {
        const float* x = in[0]->data.data() + at;
        const float inverse = inverseRms(x, n);
        float sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
            grads[1].data[i] += grad.data[at + i] * x[i] * inverse;
            sum += grad.data[at + i] * in[1]->data[i] * x[i];
        }
        for (std::size_t i = 0; i < n; ++i)
            grads[0].data[at + i] =
                inverse * (grad.data[at + i] * in[1]->data[i] - x[i] * sum * inverse * inverse / static_cast<float>(n));
    });
    return grads;
}

HostTensor embedding(const Node&, const Operands& in, const LocalPart& part)
{
    Shape shape = in[0]->shape;
    shape.push_back(in[1]->shape[1]);
    HostTensor out(std::move(shape));
    const auto width = static_cast<std::size_t>(in[1]->shape[1]);
    for (std::size_t token = 0; token < in[0]->elements(); ++token)
        if (const auto row = static_cast<std::int64_t>(in[0]->data[token]) - part.firstRow;
            row >= 0 && row < in[1]->shape[0])
            std::copy_n(in[1]->data.data() + static_cast<std::size_t>(row) * width, width,
                        out.data.data() + token * width);
    return out;
}
Gradients embeddingBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad,
                        const LocalPart& part)
{
    Gradients grads{HostTensor(), HostTensor(in[1]->shape)};
    const auto width = static_cast<std::size_t>(in[1]->shape[1]);
    for (std::size_t token = 0; token < in[0]->elements(); ++token)
        if (const auto row = static_cast<std::int64_t>(in[0]->data[token]) - part.firstRow;
            row >= 0 && row < in[1]->shape[0])
            for (std::size_t i = 0; i < width; ++i)
                grads[1].data[static_cast<std::size_t>(row) * width + i] += grad.data[token * width + i];
    return grads;
}

HostTensor positions(const Node&, const Operands& in, const LocalPart& part)
{
    HostTensor out = *in[0];
    for (std::size_t i = 0; part.countsOnce && i < out.elements(); ++i)
        out.data[i] += in[1]->data[i % in[1]->elements()];
    return out;
}
Gradients positionsBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{grad, HostTensor(in[1]->shape)};
    for (std::size_t i = 0; i < grad.elements(); ++i)
        grads[1].data[i % in[1]->elements()] += grad.data[i];
    return grads;
}

HostTensor sum(const Node&, const Operands& in, const LocalPart&)
{
    HostTensor out{Shape{}};
    double total = 0;
    for (const float value : in[0]->data)
        total += value;
    out.data.front() = static_cast<float>(total);
    return out;
}
Gradients sumBack(const Node&, const Operands& in, const HostTensor&, const HostTensor& grad, const LocalPart&)
{
    Gradients grads{HostTensor(in[0]->shape)};
    std::fill(grads[0].data.begin(), grads[0].data.end(), grad.data.front());
    return grads;
}

constexpr NodeMaths table[] = {
    {"add", add, addBack},
    {"multiply", multiply, multiplyBack},
    {"scale", scale, scaleBack},
    {"relu", relu, reluBack},
    {"silu", silu, siluBack},
    {"softmax", softmax, softmaxBack},
    {"log_softmax", logSoftmax, logSoftmaxBack},
    {"rms_norm", rmsNorm, rmsNormBack},
    {"embedding", embedding, embeddingBack},
    {"positions", positions, positionsBack},
    {"sum", sum, sumBack},
    {"hand_over", sum, sumBack},
};

} // namespace

std::span<const NodeMaths> plainMaths()
{
    return table;
}

} // namespace pipewright::spmd
