// SPDX-License-Identifier: GPL-3.0-or-later
// Runners-up: the k best programs of a small graph, or for larger ones one search per kind of node with the plan's rule
// removed. One synthesis and one linear program per alternative.
#include "core/sharding/shardingplan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace pipewright::sharding {

namespace {

constexpr int smallGraph = 16; // computed nodes; in larger graphs the next best programs differ in one layer only

/// Nodes of one kind: the same operation on the same shapes.
std::string kindOf(const TensorGraph& graph, int node)
{
    const Node& self = graph.node(node);
    std::string kind = fmt::format("{}", operations()[self.operation].name);
    for (const int operand : self.operands)
        kind += " " + shapeText(graph.node(operand).shape);
    return kind;
}

/// The program's rules and communications; equal signatures mean equivalent programs.
std::string signature(const ShardingProgram& program)
{
    std::string text;
    for (const ShardingInstruction& instruction : program.instructions)
        if (instruction.computes() || instruction.action != Action::Load)
            text += fmt::format("{} {} {} {};", instruction.tensor, instruction.rule,
                                static_cast<int>(instruction.action), toString(instruction.after.relation));
    return text;
}

/// Adds the program's best ratios, unless ratios are given.
Alternative finished(std::string name, ShardingProgram program, const TensorGraph& graph, const Machine& machine,
                     Ratios ratios, bool fixed)
{
    const auto better = fixed ? std::nullopt : bestRatios(ratioProblemOf(program, graph, machine, graph.segments()));
    if (better && costOf(program, machine, *better) < costOf(program, machine, ratios))
        ratios = *better;
    Alternative alternative{std::move(name), std::move(program), std::move(ratios), 0, true, Strategy::Hap};
    alternative.cost = costOf(alternative.program, machine, alternative.ratios);
    alternative.fits = devicesOverfull(memoryOf(alternative.program, alternative.ratios), machine).empty();
    return alternative;
}

} // namespace

std::vector<Alternative> runnersUp(const TensorGraph& graph, const Machine& machine, const ShardingPlan& plan,
                                   const PlanOptions& options, int count)
{
    std::vector<Alternative> found;
    std::vector<std::string> seen{signature(plan.program)};
    const bool fixed = options.ratios.has_value();
    const auto add = [&](std::string name, const ShardingProgram& program) {
        const std::string text = signature(program);
        if (std::find(seen.begin(), seen.end(), text) != seen.end())
            return;
        seen.push_back(text);
        found.push_back(finished(std::move(name), program, graph, machine, plan.ratios, fixed));
    };
    SynthesisOptions search{options.maxExpansions, options.deadline, 1};
    const auto computed = std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [](const Node& node) { return node.leaf == Leaf::None; });
    if (computed <= smallGraph) {
        search.programs = 1 + 3 * count; // some differ only in free instructions
        const Theory theory(graph, machine, plan.ratios, options.rules);
        for (const Candidate& candidate : synthesise(theory, search).programs)
            add(fmt::format("program {}", found.size() + 2), candidate.program);
    } else {
        std::map<std::string, std::vector<int>> kinds;
        for (int node = 0; node < graph.size(); ++node)
            if (graph.node(node).leaf == Leaf::None && forwardFlops(graph, node) > 0)
                kinds[kindOf(graph, node)].push_back(node);
        std::map<int, int> ruleOfNode;
        for (const ShardingInstruction& instruction : plan.program.instructions)
            if (instruction.computes())
                ruleOfNode[instruction.tensor] = instruction.rule;
        for (const auto& [kind, nodes] : kinds)
            for (int rule = 0; rule < static_cast<int>(sharingRules().size()); ++rule) {
                if (sharingRules()[static_cast<std::size_t>(rule)].operation != graph.node(nodes.front()).operation
                    || rule == ruleOfNode[nodes.front()])
                    continue;
                if (options.deadline.passed())
                    break;
                Theory theory(graph, machine, plan.ratios, options.rules);
                for (const int node : nodes)
                    theory.restrict(node, [rule](const Triple& triple) { return triple.rule == rule; });
                if (const SynthesisResult result = synthesise(theory, search); !result.programs.empty())
                    add(fmt::format("{} by {}", kind, sharingRules()[static_cast<std::size_t>(rule)].text),
                        result.programs.front().program);
            }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Alternative& a, const Alternative& b) { return a.cost < b.cost; });
    if (found.size() > static_cast<std::size_t>(count))
        found.resize(static_cast<std::size_t>(count));
    return found;
}

std::vector<Alternative> commonStrategies(const TensorGraph& graph, const Machine& machine, const PlanOptions& options)
{
    std::vector<Alternative> found;
    Machine unlimited = machine; // an alternative may exceed memory; `fits` says so
    unlimited.memory.assign(machine.memory.size(), 0.0);
    PlanOptions own = options;
    own.ratios.reset();
    for (const StrategyFacts& facts : strategies()) {
        if (facts.strategy == Strategy::Hap || (options.deadline.passed() && !found.empty()))
            continue;
        own.strategy = facts.strategy;
        try {
            const ShardingPlan plan = planSharding(graph, unlimited, own);
            found.push_back({std::string(facts.title), plan.program, plan.ratios, plan.cost,
                             devicesOverfull(plan.memory, machine).empty(), facts.strategy});
        } catch (const Error&) {
            continue; // not of this graph, as planSharding() says where it is asked for
        }
    }
    return found;
}

} // namespace pipewright::sharding
