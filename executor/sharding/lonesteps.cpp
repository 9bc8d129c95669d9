// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/lonesteps.h"

#include <algorithm>

namespace pipewright::sharding {

using kernels::TensorOperation;

pipewright::Step tensorStep(TensorOperation operation, std::initializer_list<std::int64_t> sizes,
                            std::initializer_list<Place> in, const Place& out, float number)
{
    kernels::TensorCall call{};
    call.operation = operation;
    call.number = number;
    std::copy(sizes.begin(), sizes.end(), call.size);
    return [call, in = std::vector<Place>(in), out](const StepContext& pass) {
        kernels::TensorCall made = call;
        for (std::size_t i = 0; i < in.size(); ++i)
            made.in[i] = pass.at(in[i]).data();
        made.out = pass.at(out).data();
        pass.on().run(made);
    };
}

namespace {

constexpr std::int64_t sumParts = 1024; ///< partial sums that a GPU computes in parallel

void add(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.forward(
        tensorStep(TensorOperation::Add, {plan.elements(result)}, {plan.value(0), plan.value(1)}, plan.value(result)));
}

void multiply(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.forward(tensorStep(TensorOperation::Multiply, {plan.elements(result)}, {plan.value(0), plan.value(1)},
                              plan.value(result)));
}
void multiplyGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    for (const int operand : {0, 1})
        writer.inputGrad(tensorStep(TensorOperation::Multiply, {plan.elements(result)},
                                    {plan.gradient(result), plan.value(1 - operand)}, plan.gradient(operand)));
}

void relu(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.forward(tensorStep(TensorOperation::Relu, {plan.elements(result)}, {plan.value(0)}, plan.value(result)));
}
void reluGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.inputGrad(tensorStep(TensorOperation::ReluGrad, {plan.elements(result)},
                                {plan.value(0), plan.gradient(result)}, plan.gradient(0)));
}

/// A function of a row, and of the logarithm of the sum of its exponentials.
template<TensorOperation operation>
void ofRows(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    const std::int64_t rows = plan.rows(0), columns = plan.width(0);
    const Place logSum = plan.own(result, "logSum", rows);
    writer.forward(tensorStep(TensorOperation::RowLogSum, {rows, columns}, {plan.value(0)}, logSum));
    writer.forward(tensorStep(operation, {rows, columns}, {plan.value(0), logSum}, plan.value(result)));
}
void softmaxGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    const std::int64_t rows = plan.rows(0), columns = plan.width(0);
    const Place grad = plan.gradient(result), made = plan.value(result), dot = plan.workspace("dot", rows);
    writer.inputGrad(tensorStep(TensorOperation::RowDot, {rows, columns}, {grad, made}, dot));
    writer.inputGrad(tensorStep(TensorOperation::SoftmaxGrad, {rows, columns}, {made, grad, dot}, plan.gradient(0)));
}
void logSoftmaxGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    const std::int64_t rows = plan.rows(0), columns = plan.width(0);
    const Place grad = plan.gradient(result), sum = plan.workspace("sum", rows);
    writer.inputGrad(tensorStep(TensorOperation::RowDot, {rows, columns}, {grad}, sum));
    writer.inputGrad(tensorStep(TensorOperation::LogSoftmaxGrad, {rows, columns}, {plan.value(result), grad, sum},
                                plan.gradient(0)));
}

// A member may have some of the table's rows: the members' results add up.
void embedding(StepWriter& writer, int result)
{
    const LonePlan& plan = loneOf(writer);
    writer.forward(tensorStep(TensorOperation::LookUp,
                              {plan.elements(0), plan.width(1), plan.part().firstRow, plan.shape(1)[0]},
                              {plan.value(0), plan.value(1)}, plan.value(result)));
}
void embeddingGrad(StepWriter& writer, int result)
{
    const LonePlan& plan = loneOf(writer);
    plan.parameter(1);
    writer.weightGrad(tensorStep(TensorOperation::LookUpGrad,
                                 {plan.elements(0), plan.width(1), plan.part().firstRow, plan.shape(1)[0]},
                                 {plan.value(0), plan.gradient(result)}, plan.gradient(1)));
}

void sum(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    const std::int64_t count = plan.elements(0), parts = std::min(sumParts, count);
    const Place some = plan.own(result, "parts", parts);
    writer.forward(tensorStep(TensorOperation::SumParts, {count, parts}, {plan.value(0)}, some));
    writer.forward(tensorStep(TensorOperation::SumParts, {parts, 1}, {some}, plan.value(result)));
}
void sumGrad(StepWriter& writer, int result)
{
    const NodePlan& plan = writer.plan;
    writer.inputGrad(
        tensorStep(TensorOperation::FillFrom, {plan.elements(0)}, {plan.gradient(result)}, plan.gradient(0)));
}

constexpr OperationSteps loneTable[] = {
    {"add", add},
    {"multiply", multiply, multiplyGrad},
    {"relu", relu, reluGrad},
    {"softmax", ofRows<TensorOperation::Softmax>, softmaxGrad},
    {"log_softmax", ofRows<TensorOperation::LogSoftmax>, logSoftmaxGrad},
    {"embedding", embedding, nullptr, embeddingGrad},
    {"sum", sum, sumGrad},
    {"hand_over", sum, sumGrad},
};

} // namespace

const OperationSteps* findLoneSteps(std::string_view operation)
{
    for (const auto table : {std::span<const OperationSteps>(loneTable), slotSteps()})
        for (const OperationSteps& steps : table)
            if (steps.operation == operation)
                return &steps;
    return nullptr;
}

} // namespace pipewright::sharding
