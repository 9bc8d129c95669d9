// SPDX-License-Identifier: GPL-3.0-or-later
// Costs, memory and text of a program, each one pass over its instructions. O(instructions × devices).
#include "core/sharding/shardingprogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipewright::sharding {

ShardingInstruction computation(const Theory& theory, int node, const Triple& triple, std::vector<Property> before)
{
    ShardingInstruction made;
    made.tensor = node;
    made.rule = triple.rule;
    made.before = std::move(before);
    made.kinds = triple.kinds;
    made.after = {node, triple.result};
    made.charges = triple.charges;
    std::tie(made.heldWhole, made.heldSplit) = theory.heldBytes(node, triple.result);
    return made;
}

double costOf(const ShardingProgram& program, const Machine& machine, const Ratios& ratios)
{
    double sum = 0;
    for (const ShardingInstruction& instruction : program.instructions)
        sum += seconds(instruction.charges, machine, ratios);
    return sum;
}

CostParts costParts(const ShardingProgram& program, const Machine& machine, const Ratios& ratios)
{
    CostParts parts;
    for (const ShardingInstruction& instruction : program.instructions)
        for (const Charge& charge : instruction.charges) {
            const double cost = seconds(charge, machine, ratios);
            (charge.communicates ? parts.communication : parts.compute) += cost;
            switch (charge.pass) {
            case Pass::Forward: parts.forward += cost; break;
            case Pass::InputGrad: parts.inputGrad += cost; break;
            case Pass::WeightGrad: parts.weightGrad += cost; break;
            }
        }
    return parts;
}

std::vector<double> memoryOf(const ShardingProgram& program, const Ratios& ratios)
{
    std::vector<double> bytes(ratios.front().size(), 0.0);
    for (const ShardingInstruction& instruction : program.instructions) {
        const auto& shares = ratios[instruction.after.relation.segment];
        for (std::size_t d = 0; d < bytes.size(); ++d)
            bytes[d] += instruction.heldWhole + instruction.heldSplit * shares[d];
    }
    return bytes;
}

std::vector<int> devicesOverfull(const std::vector<double>& bytes, const Machine& machine)
{
    std::vector<int> devices;
    for (int d = 0; d < machine.devices(); ++d)
        if (const double limit = machine.memory[d]; limit > 0 && bytes[d] > limit * (1 + 1e-9))
            devices.push_back(d);
    return devices;
}

std::string propertyText(const std::vector<Property>& properties, const TensorGraph& graph)
{
    std::string text;
    for (const Property& property : properties)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", graph.node(property.tensor).name,
                            toString(property.relation));
    return text;
}

std::string actionText(const ShardingInstruction& instruction, const TensorGraph& graph)
{
    const Node& node = graph.node(instruction.tensor);
    if (instruction.computes()) {
        std::string operands;
        for (const int operand : node.operands)
            operands += (operands.empty() ? "" : ", ") + graph.node(operand).name;
        return fmt::format("{} = {}({})", node.name, operations()[node.operation].name, operands);
    }
    const auto form = [&instruction] {
        const bool grouped =
            std::any_of(instruction.charges.begin(), instruction.charges.end(), [](const Charge& charge) {
                return charge.pass == Pass::Forward
                       && (charge.collective == Collective::GroupedBroadcast
                           || charge.collective == Collective::GroupedReduce);
            });
        return grouped ? ", grouped" : "";
    };
    switch (instruction.action) {
    case Action::AllGather:
        return fmt::format("{}: all_gather({}){}", node.name, instruction.before.front().relation.dim, form());
    case Action::ReduceScatter:
        return fmt::format("{}: reduce_scatter({}){}", node.name, instruction.after.relation.dim, form());
    case Action::AllReduce: return fmt::format("{}: all_reduce", node.name);
    case Action::AllToAll:
        return fmt::format("{}: all_to_all({}, {})", node.name, instruction.before.front().relation.dim,
                           instruction.after.relation.dim);
    case Action::Slice: return fmt::format("{}: slice({})", node.name, instruction.after.relation.dim);
    case Action::Load: break;
    }
    return fmt::format("{}: load", node.name);
}

} // namespace pipewright::sharding
