// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/nodemaths.h"

#include "core/base/diagnostic.h"
#include "executor/sharding/lonesteps.h"
#include "executor/stage/kernelsettings.h"

#include <algorithm>
#include <utility>

namespace pipewright::sharding {

using kernels::TensorOperation;

namespace {

const Operation& operationOf(const Node& node)
{
    return operations()[std::size_t(node.operation)];
}

/// A layer norm without a shift has one of zeros.
std::vector<Shape> withShift(const Node& node, std::vector<Shape> operands)
{
    if (operationOf(node).name == "layer_norm" && operands.size() == 2)
        operands.push_back(operands.back());
    return operands;
}

std::vector<Shape> operandShapes(const TensorGraph& graph, const Node& node)
{
    std::vector<Shape> shapes;
    for (const int operand : node.operands)
        shapes.push_back(graph.node(operand).shape);
    return shapes;
}

} // namespace

NodeMaths::NodeMaths(const Node& node, std::vector<Shape> operands, Shape result, const LocalPart& part)
    : m_plan(node, withShift(node, std::move(operands)), std::move(result), part),
      m_isEmpty(m_plan.elements(0) == 0 || m_plan.elements(m_plan.result()) == 0)
{
    for (const KeptForm& kept : operationOf(node).keeps)
        if (kept.bytesPerElement > 0)
            m_whole = kept.operand;
    if (!m_isEmpty)
        addRow();
}

NodeMaths::NodeMaths(const TensorGraph& graph, const Node& node, const LocalPart& part)
    : NodeMaths(node, operandShapes(graph, node), node.shape, part)
{
}

void NodeMaths::addRow()
{
    const int result = m_plan.result();
    const OperationSteps* row = findLoneSteps(m_plan.operation(result));
    if (!row) {
        row = findSteps(m_plan.operation(result));
        m_asWhole = m_whole;
    }
    if (!row)
        throw Error(m_plan.node(result).name, "groups have no mathematics of " + std::string(m_plan.operation(result)),
                    "use another operation");
    StepWriter writer(m_plan, {}, m_steps);
    if (row->forward)
        row->forward(writer, result);
    m_plan.beginBackward();
    if (row->inputGrad)
        row->inputGrad(writer, result);
    if (row->weightGrad)
        row->weightGrad(writer, result);
}

/// The tensors of a pass, by their numbers.
class NodeMaths::Pass {
public:
    Pass(const NodeMaths& of, MemberDevice& member, const Operands& operands, const BackwardWith& with)
        : m_plan(of.m_plan), m_member(member), m_piece(with.piece), m_visits(with.visits),
          m_tensors(std::size_t(2 * m_plan.firstGradient()) + m_plan.scratch().size())
    {
        for (int o = 0; o < m_plan.result(); ++o)
            set(o, std::size_t(o) < operands.size() ? operands[std::size_t(o)]->data
                                                    : keep(member.zeros(m_plan.shape(o))));
        if (of.m_asWhole >= 0)
            makeWhole(of.m_asWhole);
        if (m_piece.index > 0 && of.sequenceGradient() > 0)
            findEarlier();
    }

    void set(int number, std::span<float> values) { m_tensors[std::size_t(number)] = values; }
    std::span<float> keep(Tensor tensor) { return m_own.emplace_back(std::move(tensor)).data; }

    template<class IsNeeded>
    void makeScratch(IsNeeded isNeeded)
    {
        const std::vector<LonePlan::Scratch>& all = m_plan.scratch();
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].ofSequence || all[i].isVisits || isNeeded(all[i]))
                set(2 * m_plan.firstGradient() + int(i), all[i].ofSequence ? m_piece.gradients
                                                         : all[i].isVisits ? m_visits.data
                                                                           : keep(m_member.make({all[i].elements})));
    }
    std::span<float> scratch(std::string_view name) const
    {
        for (std::size_t i = 0; i < m_plan.scratch().size(); ++i)
            if (m_plan.scratch()[i].name == name)
                return m_tensors[std::size_t(2 * m_plan.firstGradient()) + i];
        return {};
    }

    void run(const std::vector<pipewright::Step>& steps) const
    {
        StageMemory memory;
        memory.operations = &m_member.operations();
        memory.piece = m_piece.index;
        memory.earlier = m_earlier;
        const std::span tensors(m_tensors);
        const StepContext pass{.memory = memory,
                               .inputs = m_whole,
                               .targets = m_whole,
                               .loss = m_tensors[std::size_t(m_plan.result())],
                               .tensors = tensors,
                               .operandGrads = tensors.subspan(std::size_t(m_plan.firstGradient()))};
        for (const pipewright::Step& step : steps)
            step(pass);
    }

private:
    /// The keys and values of every earlier piece lie side by side. The keys are as they were before their rotation.
    void findEarlier()
    {
        const auto pieces = std::size_t(m_piece.index), each = m_piece.earlier.elements() / pieces,
                   keys = std::size_t(m_plan.elements(1));
        const Node& node = m_plan.node(m_plan.result());
        for (std::size_t i = 0; i < pieces; ++i) {
            const std::span<float> here = m_piece.earlier.data.subspan(i * each, each);
            m_earlier.push_back(here.data());
            if (const Shape& shape = m_plan.shape(1); isRotated(node))
                m_member.operations().run(rotationOf(node, shape, false, here.first(keys), int(i) * int(shape[1])));
        }
    }

    void makeWhole(int operand)
    {
        const std::span<float> values = m_tensors[std::size_t(operand)],
                               whole = keep(m_member.make(m_plan.shape(operand)));
        m_whole = {reinterpret_cast<std::int32_t*>(whole.data()), whole.size()};
        set(operand, whole);
        kernels::TensorCall call{};
        call.operation = TensorOperation::WholeNumbers;
        call.size[0] = std::int64_t(values.size());
        call.in[0] = values.data();
        call.whole = m_whole.data();
        m_member.operations().run(call);
    }

    const LonePlan& m_plan;
    MemberDevice& m_member;
    const SequencePiece& m_piece;
    const Tensor& m_visits;
    std::vector<const float*> m_earlier; ///< oldest first
    std::span<std::int32_t> m_whole;
    std::vector<Tensor> m_own;
    std::vector<std::span<float>> m_tensors;
};

Tensor NodeMaths::forward(MemberDevice& member, const Operands& operands, const SequencePiece& piece) const
{
    if (m_isEmpty)
        return forwardOfNothing(member, operands);
    const BackwardWith with{piece, {}};
    Pass pass(*this, member, operands, with);
    pass.makeScratch([](const LonePlan::Scratch& one) { return one.ofForward; });
    Tensor made = member.make(m_plan.shape(m_plan.result()));
    pass.set(m_plan.result(), made.data);
    pass.run(m_steps.forward);
    return made;
}

bool NodeMaths::hasVisits() const
{
    return m_plan.node(0).attribute("balance") > 0;
}

Tensor NodeMaths::visits(MemberDevice& member, const Operands& operands) const
{
    if (!hasVisits())
        return {};
    Tensor found = member.zeros({m_plan.node(0).shape[2]}); // experts
    if (m_isEmpty)
        return found;
    const BackwardWith with;
    Pass pass(*this, member, operands, with);
    pass.makeScratch([](const LonePlan::Scratch& one) { return one.ofForward; });
    pass.set(m_plan.result(), pass.keep(member.make(m_plan.shape(m_plan.result()))));
    pass.run(m_steps.forward);
    const std::span<const float> begin = pass.scratch("begin");
    member.operations().run(
        kernels::CountCopies{{reinterpret_cast<const std::int32_t*>(begin.data()), begin.size()}, found.data});
    return found;
}

bool NodeMaths::makesAllAtOnce() const
{
    bool hasParameters = false;
    for (int o = 0; o < m_plan.result(); ++o)
        hasParameters = hasParameters || m_plan.isParameter(o);
    return !m_isEmpty && hasParameters && m_steps.weightGrad.empty();
}

std::size_t NodeMaths::sequenceGradient() const
{
    for (const LonePlan::Scratch& one : m_plan.scratch())
        if (one.ofSequence)
            return std::size_t(one.elements);
    return 0;
}

/// Where no step makes gradients of parameters alone, one pass makes all.
bool NodeMaths::isWanted(int operand, const Wanted& wanted) const
{
    return m_steps.weightGrad.empty() || (m_plan.isParameter(operand) ? wanted.parameters : wanted.inputs);
}

std::vector<Tensor> NodeMaths::backward(MemberDevice& member, const Operands& operands, const Tensor& result,
                                        const Tensor& resultGrad, const Wanted& wanted, const BackwardWith& with) const
{
    if (m_isEmpty)
        return backwardOfNothing(member, operands, resultGrad, wanted);
    std::vector<Tensor> grads(std::size_t(m_plan.result()));
    for (int o = 0; o < m_plan.result(); ++o) {
        if (o == m_whole || !isWanted(o, wanted))
            continue;
        Tensor& grad = grads[std::size_t(o)];
        if (m_plan.isParameter(o))
            grad = member.zeros(m_plan.shape(o));
        else
            grad = m_steps.inputGrad.empty() ? resultGrad : member.make(m_plan.shape(o));
    }
    const bool again = m_plan.isMadeAgain();
    Pass pass(*this, member, operands, with);
    const int first = m_plan.firstGradient();
    for (int o = 0; o < m_plan.result(); ++o)
        pass.set(first + o, grads[std::size_t(o)].data);
    pass.set(first + m_plan.result(), resultGrad.data);
    pass.set(m_plan.result(), again ? pass.keep(member.make(m_plan.shape(m_plan.result()))) : result.data);
    pass.makeScratch([again](const LonePlan::Scratch& one) { return again || one.ofBackward; });
    if (again)
        pass.run(m_steps.forward);
    if (wanted.inputs || m_steps.weightGrad.empty())
        pass.run(m_steps.inputGrad);
    if (wanted.parameters)
        pass.run(m_steps.weightGrad);
    grads.resize(operands.size());
    return grads;
}

namespace {

/// Calls visit(first value, values, first of the bias, its values) for what each expert's bias, or the only one, is
/// added to.
template<class Visit>
void forEachBias(const Shape& result, const Shape& bias, Visit visit)
{
    const std::int64_t all = std::int64_t(product(result.begin(), result.end())), width = bias.back(),
                       rows = bias.size() > 1 ? all / (result[0] * result[1]) : all;
    for (std::int64_t first = 0, block = 0; first < all; first += rows, ++block)
        visit(first, rows, bias.size() > 1 ? block % bias[0] * width : 0, width);
}

} // namespace

/// A product's share without inputs is its bias.
Tensor NodeMaths::forwardOfNothing(MemberDevice& member, const Operands& operands) const
{
    Tensor made = member.zeros(m_plan.shape(m_plan.result()));
    if (operationOf(m_plan.node(0)).work == Work::Product && operands.size() > 2 && m_plan.part().leftOut != 2
        && made.elements() > 0)
        forEachBias(made.shape, operands[2]->shape, [&](auto first, auto count, auto firstOfBias, auto width) {
            float* const values = made.data.data() + first;
            member.call(TensorOperation::AddRepeated, {count, width}, {values, operands[2]->data.data() + firstOfBias},
                        values);
        });
    return made;
}

std::vector<Tensor> NodeMaths::backwardOfNothing(MemberDevice& member, const Operands& operands,
                                                 const Tensor& resultGrad, const Wanted& wanted) const
{
    std::vector<Tensor> grads(operands.size());
    const bool isProduct = operationOf(m_plan.node(0)).work == Work::Product;
    for (int o = 0; o < int(operands.size()); ++o)
        if (o != m_whole && (!isProduct || (o > 0 ? wanted.parameters : wanted.inputs)))
            grads[std::size_t(o)] = member.zeros(m_plan.shape(o));
    if (isProduct && operands.size() > 2 && wanted.parameters && resultGrad.elements() > 0)
        forEachBias(resultGrad.shape, operands[2]->shape, [&](auto first, auto count, auto firstOfBias, auto width) {
            member.call(TensorOperation::SumRepeated, {count, width}, {resultGrad.data.data() + first},
                        grads[2].data.data() + firstOfBias);
        });
    return grads;
}

} // namespace pipewright::sharding
