// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/plainmaths.h"

#include <algorithm>

namespace pipewright::sharding {

namespace {

using Gradients = std::vector<Tensor>;
using kernels::TensorOperation;

constexpr std::int64_t sumParts = 1024; ///< partial sums that a GPU computes in parallel

/// An elementwise operation of one or two operands of one shape.
Tensor mapped(MemberDevice& member, TensorOperation operation, const Tensor& a, const Tensor* b = nullptr,
              float number = 0)
{
    Tensor out = member.make(a.shape);
    member.call(operation, {count(a)}, {a.data.data(), b ? b->data.data() : nullptr}, out.data.data(), number);
    return out;
}

Tensor add(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    return mapped(member, TensorOperation::Add, *in[0], in[1]);
}
Gradients addBack(MemberDevice&, const Node&, const Operands&, const Tensor&, const Tensor& grad, const LocalPart&)
{
    return {grad, grad};
}

Tensor multiply(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    return mapped(member, TensorOperation::Multiply, *in[0], in[1]);
}
Gradients multiplyBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                       const LocalPart&)
{
    return {mapped(member, TensorOperation::Multiply, grad, in[1]),
            mapped(member, TensorOperation::Multiply, grad, in[0])};
}

Tensor scale(MemberDevice& member, const Node& node, const Operands& in, const LocalPart&)
{
    return mapped(member, TensorOperation::Scale, *in[0], nullptr, static_cast<float>(node.attributes.at("factor")));
}
Gradients scaleBack(MemberDevice& member, const Node& node, const Operands&, const Tensor&, const Tensor& grad,
                    const LocalPart& part)
{
    return {scale(member, node, {&grad}, part)};
}

Tensor relu(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    return mapped(member, TensorOperation::Relu, *in[0]);
}
Gradients reluBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                   const LocalPart&)
{
    return {mapped(member, TensorOperation::ReluGrad, *in[0], &grad)};
}

Tensor silu(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    return mapped(member, TensorOperation::Silu, *in[0]);
}
Gradients siluBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                   const LocalPart&)
{
    return {mapped(member, TensorOperation::SiluGrad, *in[0], &grad)};
}

struct Rows {
    std::int64_t rows = 0, columns = 0;
    explicit Rows(const Tensor& tensor)
        : rows(tensor.elements() == 0 ? 0 : count(tensor) / tensor.shape.back()), columns(tensor.shape.back())
    {
    }
};

/// One number per row of the first operand.
Tensor ofRows(MemberDevice& member, TensorOperation operation, const Tensor& a, const Tensor* b = nullptr)
{
    const Rows is(a);
    Tensor out = member.make({is.rows});
    member.call(operation, {is.rows, is.columns}, {a.data.data(), b ? b->data.data() : nullptr}, out.data.data());
    return out;
}

/// Applies an operation to rows; the result has the first operand's shape.
Tensor inRows(MemberDevice& member, TensorOperation operation, std::initializer_list<const Tensor*> in)
{
    const Tensor& first = **in.begin();
    const Rows is(first);
    Tensor out = member.make(first.shape);
    const auto at = [&in](std::size_t i) { return i < in.size() ? in.begin()[i]->data.data() : nullptr; };
    member.call(operation, {is.rows, is.columns}, {at(0), at(1), at(2)}, out.data.data());
    return out;
}

Tensor softmax(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    const Tensor logSum = ofRows(member, TensorOperation::RowLogSum, *in[0]);
    return inRows(member, TensorOperation::Softmax, {in[0], &logSum});
}
Gradients softmaxBack(MemberDevice& member, const Node&, const Operands&, const Tensor& result, const Tensor& grad,
                      const LocalPart&)
{
    const Tensor dot = ofRows(member, TensorOperation::RowDot, grad, &result);
    return {inRows(member, TensorOperation::SoftmaxGrad, {&result, &grad, &dot})};
}

Tensor logSoftmax(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    const Tensor logSum = ofRows(member, TensorOperation::RowLogSum, *in[0]);
    return inRows(member, TensorOperation::LogSoftmax, {in[0], &logSum});
}
Gradients logSoftmaxBack(MemberDevice& member, const Node&, const Operands&, const Tensor& result, const Tensor& grad,
                         const LocalPart&)
{
    const Tensor sum = ofRows(member, TensorOperation::RowDot, grad);
    return {inRows(member, TensorOperation::LogSoftmaxGrad, {&result, &grad, &sum})};
}

Tensor embedding(MemberDevice& member, const Node&, const Operands& in, const LocalPart& part)
{
    Shape shape = in[0]->shape;
    shape.push_back(in[1]->shape[1]);
    Tensor out = member.make(std::move(shape));
    member.call(TensorOperation::LookUp, {count(*in[0]), in[1]->shape[1], part.firstRow, in[1]->shape[0]},
                {in[0]->data.data(), in[1]->data.data()}, out.data.data());
    return out;
}
Gradients embeddingBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                        const LocalPart& part)
{
    Gradients grads{Tensor(), member.zeros(in[1]->shape)};
    member.call(TensorOperation::LookUpGrad, {count(*in[0]), in[1]->shape[1], part.firstRow, in[1]->shape[0]},
                {in[0]->data.data(), grad.data.data()}, grads[1].data.data());
    return grads;
}

Tensor featureBag(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    const std::int64_t hidden = in[1]->shape[1];
    Tensor out = member.make({in[0]->shape[0], hidden});
    if (out.elements() > 0) {
        const MemberDevice::Whole features = member.wholeNumbers(*in[0]);
        member.operations().run(kernels::FeatureBagForward{static_cast<int>(in[0]->shape[1]), static_cast<int>(hidden),
                                                           features.data, in[1]->data, out.data});
    }
    return out;
}
Gradients featureBagBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                         const LocalPart&)
{
    Gradients grads{Tensor(), member.zeros(in[1]->shape)};
    if (grad.elements() > 0) {
        const MemberDevice::Whole features = member.wholeNumbers(*in[0]);
        member.operations().run(kernels::FeatureBagWeightGrad{static_cast<int>(in[0]->shape[1]),
                                                              static_cast<int>(in[1]->shape[1]), features.data,
                                                              grad.data, grads[1].data});
    }
    return grads;
}

Tensor positions(MemberDevice& member, const Node&, const Operands& in, const LocalPart& part)
{
    if (!part.countsOnce || in[0]->elements() == 0)
        return *in[0];
    Tensor out = member.make(in[0]->shape);
    member.call(TensorOperation::AddRepeated, {count(out), count(*in[1])}, {in[0]->data.data(), in[1]->data.data()},
                out.data.data());
    return out;
}
Gradients positionsBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                        const LocalPart& part)
{
    Gradients grads{grad, Tensor()};
    if (!part.weightGrads)
        return grads;
    grads[1] = member.zeros(in[1]->shape);
    if (grad.elements() > 0)
        member.call(TensorOperation::SumRepeated, {count(grad), count(*in[1])}, {grad.data.data()},
                    grads[1].data.data());
    return grads;
}

Tensor sum(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    Tensor out = member.make(Shape{});
    const std::int64_t parts = std::min(sumParts, count(*in[0]));
    const Tensor some = member.make({parts});
    member.call(TensorOperation::SumParts, {count(*in[0]), parts}, {in[0]->data.data()}, some.data.data());
    member.call(TensorOperation::SumParts, {parts, 1}, {some.data.data()}, out.data.data());
    return out;
}
Gradients sumBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                  const LocalPart&)
{
    Gradients grads{member.make(in[0]->shape)};
    member.call(TensorOperation::FillFrom, {count(*in[0])}, {grad.data.data()}, grads[0].data.data());
    return grads;
}

/// Calls `work(first value, values, half)` for the two halves of every sequence: the first, which has the middle token,
/// and the second.
template<typename Work>
void forEachHalf(const Tensor& x, Work work)
{
    const auto width = static_cast<std::size_t>(x.shape[2]), length = static_cast<std::size_t>(x.shape[1]),
               first = (length - length / 2) * width;
    for (std::size_t begin = 0; begin < x.elements(); begin += length * width) {
        work(begin, first, std::size_t{0});
        if (first < length * width)
            work(begin + first, length * width - first, std::size_t{1});
    }
}

/// The first half of every sequence is the first segment (BERT's sentence A).
Tensor segments(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    Tensor out = member.make(in[0]->shape);
    forEachHalf(*in[0], [&](std::size_t first, std::size_t values, std::size_t half) {
        member.call(TensorOperation::AddRepeated, {static_cast<std::int64_t>(values), in[1]->shape[1]},
                    {in[0]->data.data() + first, in[1]->data.data() + half * static_cast<std::size_t>(in[1]->shape[1])},
                    out.data.data() + first);
    });
    return out;
}
Gradients segmentsBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                       const LocalPart& part)
{
    Gradients grads{grad, Tensor()};
    if (!part.weightGrads)
        return grads;
    grads[1] = member.zeros(in[1]->shape);
    forEachHalf(grad, [&](std::size_t first, std::size_t values, std::size_t half) {
        member.call(TensorOperation::SumRepeated, {static_cast<std::int64_t>(values), in[1]->shape[1]},
                    {grad.data.data() + first},
                    grads[1].data.data() + half * static_cast<std::size_t>(in[1]->shape[1]));
    });
    return grads;
}

std::span<float> rowsOf(const Tensor& x, std::int64_t sequence, std::int64_t first, std::int64_t rows)
{
    const std::int64_t width = x.shape[2];
    return x.data.subspan(static_cast<std::size_t>((sequence * x.shape[1] + first) * width),
                          static_cast<std::size_t>(rows * width));
}

Tensor classToken(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    const std::int64_t patches = in[0]->shape[1];
    Tensor out = member.make({in[0]->shape[0], patches + 1, in[0]->shape[2]});
    for (std::int64_t picture = 0; picture < in[0]->shape[0] && out.elements() > 0; ++picture) {
        member.operations().copy(std::span<const float>(in[1]->data), rowsOf(out, picture, 0, 1));
        member.operations().copy(std::span<const float>(rowsOf(*in[0], picture, 0, patches)),
                                 rowsOf(out, picture, 1, patches));
    }
    return out;
}
Gradients classTokenBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                         const LocalPart& part)
{
    const std::int64_t patches = in[0]->shape[1];
    Gradients grads{part.inputGrads ? member.make(in[0]->shape) : Tensor(),
                    part.weightGrads ? member.zeros(in[1]->shape) : Tensor()};
    for (std::int64_t picture = 0; picture < in[0]->shape[0] && grad.elements() > 0; ++picture) {
        if (part.inputGrads)
            member.operations().copy(std::span<const float>(rowsOf(grad, picture, 1, patches)),
                                     rowsOf(grads[0], picture, 0, patches));
        if (part.weightGrads)
            member.operations().run(kernels::Add{grads[1].data, std::span<const float>(rowsOf(grad, picture, 0, 1))});
    }
    return grads;
}

Tensor firstRow(MemberDevice& member, const Node&, const Operands& in, const LocalPart&)
{
    const Tensor& x = *in[0];
    const auto width = static_cast<std::size_t>(x.shape[2]);
    Tensor out = member.make({x.shape[0], x.shape[2]});
    for (std::int64_t sequence = 0; sequence < x.shape[0] && out.elements() > 0; ++sequence)
        member.operations().copy(std::span<const float>(rowsOf(x, sequence, 0, 1)),
                                 out.data.subspan(static_cast<std::size_t>(sequence) * width, width));
    return out;
}
Gradients firstRowBack(MemberDevice& member, const Node&, const Operands& in, const Tensor&, const Tensor& grad,
                       const LocalPart&)
{
    const auto width = static_cast<std::size_t>(in[0]->shape[2]);
    Gradients grads{member.zeros(in[0]->shape)};
    for (std::int64_t sequence = 0; sequence < in[0]->shape[0] && grad.elements() > 0; ++sequence)
        member.operations().copy(
            std::span<const float>(grad.data.subspan(static_cast<std::size_t>(sequence) * width, width)),
            rowsOf(grads[0], sequence, 0, 1));
    return grads;
}

constexpr NodeMaths plainTable[] = {
    {"add", add, addBack, 2},
    {"multiply", multiply, multiplyBack, 2},
    {"scale", scale, scaleBack, 1, "factor"},
    {"relu", relu, reluBack, 1},
    {"silu", silu, siluBack, 1},
    {"softmax", softmax, softmaxBack, 1},
    {"log_softmax", logSoftmax, logSoftmaxBack, 1},
    {"embedding", embedding, embeddingBack, 2},
    {"feature_bag", featureBag, featureBagBack, 2},
    {"positions", positions, positionsBack, 2},
    {"segments", segments, segmentsBack, 2},
    {"class_token", classToken, classTokenBack, 2},
    {"first_row", firstRow, firstRowBack, 1},
    {"sum", sum, sumBack, 1},
    {"hand_over", sum, sumBack, 1},
};

} // namespace

bool NodeMaths::knows(std::string_view attribute) const
{
    const std::size_t at = attributes.find(attribute);
    const auto ends = [this](std::size_t place) { return place == attributes.size() || attributes[place] == ' '; };
    return at != std::string_view::npos && (at == 0 || attributes[at - 1] == ' ') && ends(at + attribute.size());
}

std::span<const NodeMaths> plainMaths()
{
    return plainTable;
}

} // namespace pipewright::sharding
