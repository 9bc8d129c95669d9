// SPDX-License-Identifier: GPL-3.0-or-later
// One walk over the instructions per pass, forwards or backwards. O(instructions), and O(instructions · members) for
// the times.
#include "core/sharding/memberpasses.h"

#include <algorithm>

namespace pipewright::sharding {

namespace {

class PassWriter {
public:
    PassWriter(const ShardingProgram& program, const TensorGraph& graph) : m_program(program), m_graph(graph) {}

    MemberPasses write()
    {
        const int count = static_cast<int>(m_program.instructions.size());
        for (int i = 0; i < count; ++i)
            forward(i);
        for (int i = count; i-- > 0;) {
            inputGrad(i);
            weightGrad(i);
        }
        return std::move(m_passes);
    }

private:
    Leaf leafOf(int tensor) const { return m_graph.node(tensor).leaf; }
    bool anyOperand(const ShardingInstruction& instruction, auto is) const
    {
        return std::any_of(instruction.before.begin(), instruction.before.end(),
                           [&](const Property& property) { return is(leafOf(property.tensor)); });
    }

    void forward(int i)
    {
        const ShardingInstruction& instruction = m_program.instructions[i];
        if (instruction.computes()) {
            m_passes.forward.push_back({MemberStepKind::Compute, i});
            return;
        }
        m_passes.forward.push_back({forwardKind(instruction.action), i});
    }

    static MemberStepKind forwardKind(Action action)
    {
        switch (action) {
        case Action::Load: return MemberStepKind::Load;
        case Action::Slice: return MemberStepKind::Slice;
        case Action::AllGather:
        case Action::ReduceScatter:
        case Action::AllReduce:
        case Action::AllToAll: return MemberStepKind::Exchange;
        }
        return MemberStepKind::Exchange;
    }

    static MemberStepKind backwardKind(Action action)
    {
        return action == Action::Slice ? MemberStepKind::SliceGrad : MemberStepKind::ExchangeGrad;
    }

    void inputGrad(int i)
    {
        const ShardingInstruction& instruction = m_program.instructions[i];
        const Leaf leaf = leafOf(instruction.after.tensor);
        if (instruction.computes()) {
            if (m_graph.node(instruction.tensor).attribute("balance") > 0
                && instruction.after.relation.kind == RelationKind::Gather)
                m_passes.inputGrad.push_back({MemberStepKind::SumVisits, i});
            m_passes.inputGrad.push_back({MemberStepKind::InputGrad, i});
        } else if (instruction.action == Action::Load) {
            if (leaf == Leaf::Received && instruction.after.relation.kind == RelationKind::Identity)
                m_passes.inputGrad.push_back({MemberStepKind::ReceivedSum, i});
        } else if (leaf == Leaf::None || leaf == Leaf::Received) {
            m_passes.inputGrad.push_back({backwardKind(instruction.action), i});
        }
    }

    void weightGrad(int i)
    {
        const ShardingInstruction& instruction = m_program.instructions[i];
        if (instruction.computes()) {
            if (!anyOperand(instruction, [](Leaf leaf) { return leaf == Leaf::Parameter; }))
                return;
            if (sharingRules()[static_cast<std::size_t>(instruction.rule)].factors()) {
                m_passes.weightGrad.push_back({MemberStepKind::GatherFactors, i});
                m_passes.weightGrad.push_back({MemberStepKind::FactorGrad, i});
            } else {
                m_passes.weightGrad.push_back({MemberStepKind::WeightGrad, i});
            }
            return;
        }
        if (leafOf(instruction.after.tensor) != Leaf::Parameter)
            return;
        if (instruction.action != Action::Load) {
            m_passes.weightGrad.push_back({backwardKind(instruction.action), i});
            return;
        }
        if (instruction.after.relation.kind == RelationKind::Identity && !instruction.unreduced)
            m_passes.weightGrad.push_back({MemberStepKind::ParameterSum, i});
        m_passes.weightGrad.push_back({MemberStepKind::StoreParameter, i});
    }

    const ShardingProgram& m_program;
    const TensorGraph& m_graph;
    MemberPasses m_passes;
};

/// The charges of an instruction that a step pays.
bool paidBy(MemberStepKind kind, const Charge& charge)
{
    switch (kind) {
    case MemberStepKind::Load:
    case MemberStepKind::Slice:
    case MemberStepKind::SliceGrad:
    case MemberStepKind::SumVisits: // some numbers alone
    case MemberStepKind::StoreParameter: return false;
    case MemberStepKind::Compute: return !charge.communicates && charge.pass == Pass::Forward;
    case MemberStepKind::InputGrad: return !charge.communicates && charge.pass == Pass::InputGrad;
    case MemberStepKind::WeightGrad:
    case MemberStepKind::FactorGrad: return !charge.communicates && charge.pass == Pass::WeightGrad;
    case MemberStepKind::Exchange: return charge.communicates && charge.pass == Pass::Forward;
    case MemberStepKind::ReceivedSum: return charge.communicates && charge.pass == Pass::InputGrad;
    case MemberStepKind::ExchangeGrad: return charge.communicates && charge.pass != Pass::Forward;
    case MemberStepKind::GatherFactors:
    case MemberStepKind::ParameterSum: return charge.communicates && charge.pass == Pass::WeightGrad;
    }
    return false;
}

} // namespace

MemberPasses memberPasses(const ShardingProgram& program, const TensorGraph& graph)
{
    return PassWriter(program, graph).write();
}

std::vector<std::size_t> collectivesOf(const MemberPass& pass, int members)
{
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < pass.size() && members > 1; ++i)
        if (isCollective(pass[i].kind))
            found.push_back(i);
    return found;
}

PartSeconds partSeconds(const MemberPass& pass, const ShardingProgram& program, const Machine& machine,
                        const Ratios& ratios)
{
    const auto members = static_cast<std::size_t>(machine.devices());
    PartSeconds times;
    times.parts.emplace_back(members, 0.0);
    for (const MemberStep& step : pass) {
        const ShardingInstruction& instruction = program.instructions[step.instruction];
        const bool together = machine.devices() > 1 && isCollective(step.kind);
        if (together) {
            times.collectives.push_back(0);
            times.kinds.push_back(Collective::AllReduce); // a collective without a communication charge
            times.parts.emplace_back(members, 0.0);
        }
        for (const Charge& charge : instruction.charges) {
            if (!paidBy(step.kind, charge))
                continue;
            if (together) {
                times.kinds.back() = charge.collective;
                times.collectives.back() += seconds(charge, machine, ratios);
                continue;
            }
            for (const Line& line : linesOf(charge, machine))
                times.parts.back()[line.device] +=
                    line.constant + (line.segment < 0 ? 0 : line.slope * ratios[line.segment][line.device]);
        }
    }
    return times;
}

} // namespace pipewright::sharding
