// SPDX-License-Identifier: GPL-3.0-or-later
// The two backward counterparts of an instruction (arXiv 2401.05965). A tensor that is whole on every member has a
// gradient that is a sum over members, and the reverse; pieces stay pieces.
#include "executor/sharding/groupmember.h"
#include "executor/sharding/instructionfacts.h"

#include <utility>

namespace pipewright::sharding {

void GroupMember::exchangeGrad(const ShardingInstruction& instruction)
{
    const Property &from = instruction.before.front(), &to = instruction.after;
    const Tensor grad = takeGradient(to);
    const bool exact = movesExactPieces(instruction, false);
    m_collectives.narrow(m_member) = hasRoundedGradient(to);
    switch (instruction.action) {
    case Action::AllGather: addGradient(from, m_collectives.reduceScatter(m_member, grad, cutOf(from, exact))); break;
    case Action::AllReduce: addGradient(from, m_collectives.allReduce(m_member, grad)); break;
    case Action::ReduceScatter: addGradient(from, m_collectives.allGather(m_member, grad, cutOf(to, exact))); break;
    case Action::AllToAll: addGradient(from, m_collectives.allToAll(m_member, grad, cutOf(to), cutOf(from))); break;
    case Action::Load:
    case Action::Slice: break;
    }
}

void GroupMember::sliceGrad(const ShardingInstruction& instruction)
{
    const Property &from = instruction.before.front(), &to = instruction.after;
    const Tensor grad = takeGradient(to);
    Tensor whole = m_device.zeros(m_stage.graph.node(from.tensor).shape);
    paste(m_device, whole, grad, to.relation.dim, cutOf(to).first(m_member));
    addGradient(from, std::move(whole));
}

Tensor GroupMember::takeGradient(const Property& property)
{
    const auto found = m_gradients.find(property);
    Tensor gradient; // zeros when nothing came back this way
    if (found == m_gradients.end()) {
        gradient = m_device.zeros(shapeOf(property));
    } else {
        gradient = std::move(found->second);
        m_gradients.erase(found);
    }
    if (hasRoundedGradient(property) && gradient.elements() > 0)
        m_device.operations().run(kernels::RoundToBf16{gradient.data});
    if (m_observer)
        m_observer->gradient(m_device, property, gradient);
    return gradient;
}

void GroupMember::addGradient(const Property& property, Tensor gradient)
{
    const auto [found, isNew] = m_gradients.try_emplace(property, std::move(gradient));
    if (!isNew)
        accumulate(m_device, found->second, gradient);
}

void GroupMember::addOperandGradients(const ShardingInstruction& instruction, std::vector<Tensor> found,
                                      bool ofParameters)
{
    for (std::size_t o = 0; o < found.size(); ++o) {
        const Leaf leaf = leafOf(instruction.before[o]);
        if (leaf == Leaf::Input || (leaf == Leaf::Parameter) != ofParameters)
            continue;
        // An operand that only the first member counted has its gradient there alone, unless it is kept as Once on
        // every member.
        if (countsOnce(instruction, o) && instruction.kinds[o] != Need::Once && m_member != 0)
            continue;
        addGradient(instruction.before[o], std::move(found[o]));
    }
}

void GroupMember::sumVisits(const ShardingInstruction& instruction)
{
    const std::vector<Tensor> operands = operandsOf(instruction);
    m_collectives.narrow(m_member) = false;
    m_visits = m_collectives.allReduce(m_member, mathsOf(instruction).maths.visits(m_device, pointersTo(operands)));
}

void GroupMember::inputGrad(const ShardingInstruction& instruction)
{
    if (isHandOver(instruction)) {
        addGradient(instruction.before.front(),
                    assembled(instruction.before.front(), m_edges.out, &StageEdge::gradients));
        return;
    }
    Tensor grad = takeGradient(instruction.after);
    bool inputs = false, parameters = false;
    for (const Property& operand : instruction.before) {
        parameters = parameters || leafOf(operand) == Leaf::Parameter;
        inputs = inputs || leafOf(operand) == Leaf::None || leafOf(operand) == Leaf::Received;
    }
    if (inputs) {
        const NodeMaths& maths = mathsOf(instruction).maths;
        const std::vector<Tensor> operands = operandsOf(instruction);
        // Where every member routes all tokens, the gradient is a sum, and the load-balancing term is in one part of
        // it.
        if (maths.hasVisits() && instruction.after.relation.kind != RelationKind::Gather)
            m_visits = m_member == 0 ? maths.visits(m_device, pointersTo(operands))
                                     : m_device.zeros({m_stage.graph.node(instruction.tensor).shape[2]});
        std::vector<Tensor> found =
            maths.backward(m_device, pointersTo(operands), value(instruction.after), grad, {.parameters = false},
                           {pieceFor(instruction), std::exchange(m_visits, {})});
        if (maths.makesAllAtOnce()) { // of parameters, too, for W
            parameters = false;
            for (std::size_t o = 0; o < found.size(); ++o)
                if (leafOf(instruction.before[o]) == Leaf::Parameter)
                    kept().gradients[instruction.before[o]] = keepExact(std::move(found[o]), m_keptGradients);
        }
        addOperandGradients(instruction, std::move(found), false);
    }
    if (parameters)
        kept().gradients[instruction.after] = keep(std::move(grad), instruction.after, m_keptGradients);
}

void GroupMember::weightGrad(const ShardingInstruction& instruction)
{
    const NodeMaths& maths = mathsOf(instruction).maths;
    std::vector<Tensor> found(instruction.before.size());
    if (maths.makesAllAtOnce()) {
        for (std::size_t o = 0; o < found.size(); ++o)
            if (const auto made = kept().gradients.find(instruction.before[o]); made != kept().gradients.end())
                found[o] = made->second.wide;
    } else {
        const std::vector<Tensor> operands = operandsOf(instruction);
        found = maths.backward(m_device, pointersTo(operands), value(instruction.after),
                               widened(kept().gradients.at(instruction.after)), {.inputs = false},
                               {pieceFor(instruction), {}});
    }
    addOperandGradients(instruction, std::move(found), true);
}

void GroupMember::gatherFactors(const ShardingInstruction& instruction)
{
    const bool exact = movesExactPieces(instruction, false);
    const Property& input = instruction.before.front();
    m_collectives.narrow(m_member) = m_narrow;
    m_factorRows = m_collectives.allGather(m_member, value(input), cutOf(input, exact));
    m_factorGrads = m_collectives.allGather(m_member, widened(kept().gradients.at(instruction.after)),
                                            cutOf(instruction.after, exact));
}

/// Every member has all rows of the input and of the result's gradient, and computes the whole weight gradient from
/// them.
void GroupMember::factorGrad(const ShardingInstruction& instruction)
{
    std::vector<Tensor> operands = operandsOf(instruction);
    operands[0] = m_factorRows;
    std::vector<Tensor> found =
        mathsOf(instruction).ofFactors->backward(m_device, pointersTo(operands), {}, m_factorGrads, {.inputs = false});
    for (std::size_t o = 1; o < found.size(); ++o)
        addGradient(instruction.before[o], std::move(found[o]));
    m_factorRows = m_factorGrads = {};
}

void GroupMember::storeParameter(const ShardingInstruction& instruction)
{
    const Tensor grad = takeGradient(instruction.after);
    const MemberParameter& place = m_parameters[m_parameterAt.at(instruction.after)];
    if (place.count > 0)
        m_device.operations().run(
            kernels::Add{m_block.gradients.subspan(place.offset, place.count), std::span<const float>(grad.data)});
}

} // namespace pipewright::sharding
