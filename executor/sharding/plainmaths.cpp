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

constexpr NodeMaths plainTable[] = {
    {"add", add, addBack},
    {"multiply", multiply, multiplyBack},
    {"scale", scale, scaleBack},
    {"relu", relu, reluBack},
    {"silu", silu, siluBack},
    {"softmax", softmax, softmaxBack},
    {"log_softmax", logSoftmax, logSoftmaxBack},
    {"embedding", embedding, embeddingBack},
    {"feature_bag", featureBag, featureBagBack},
    {"positions", positions, positionsBack},
    {"sum", sum, sumBack},
    {"hand_over", sum, sumBack},
};

} // namespace

std::span<const NodeMaths> plainMaths()
{
    return plainTable;
}

} // namespace pipewright::sharding
