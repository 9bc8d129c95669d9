// SPDX-License-Identifier: GPL-3.0-or-later
// One instruction per line, read from left to right against the tensor graph and the rules of the theory; what does not
// fit is refused with its line. O(lines x rules).
#include "core/sharding/statedplan.h"

#include "core/base/textcells.h"
#include "core/sharding/sharedstage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace pipewright::sharding {

namespace {

constexpr std::string_view unreducedLoad = "unreduced load";

std::string_view nameOf(Action action)
{
    switch (action) {
    case Action::Load: return "load";
    case Action::AllGather: return "all_gather";
    case Action::ReduceScatter: return "reduce_scatter";
    case Action::AllReduce: return "all_reduce";
    case Action::AllToAll: return "all_to_all";
    case Action::Slice: return "slice";
    }
    return {};
}

std::string relationsText(const std::vector<Property>& properties)
{
    std::string text;
    for (const Property& property : properties)
        text += (text.empty() ? "" : " ") + toString(property.relation);
    return text;
}

/// A line in its four parts.
struct Line4 {
    std::string_view tensor, action, before, after;
};

/// Reads line by line and knows what the lines before have made.
class ProgramReader {
public:
    explicit ProgramReader(const Theory& theory) : m_theory(theory), m_graph(theory.graph()) {}

    ShardingProgram read(const std::vector<std::string>& lines)
    {
        for (m_line = 0; m_line < lines.size(); ++m_line)
            add(partsOf(lines[m_line]));
        for (int node = 0; node < m_graph.size(); ++node)
            if (m_graph.node(node).leaf == Leaf::None && !m_computed.contains(node))
                throw Error("program", fmt::format("no line computes {}", m_graph.node(node).name), remedy);
        if (m_program.instructions.back().tensor != m_graph.loss())
            throw Error("program", "its last line is not the stage's last node", remedy);
        return std::move(m_program);
    }

private:
    static constexpr const char* remedy = "leave \"program\" out to have it found, or write the plan anew: pipewright "
                                          "shard; the strategy hap takes every rule";

    [[noreturn]] void fault(const std::string& what) const
    {
        throw Error(fmt::format("program.{}", m_line), what, remedy);
    }

    Line4 partsOf(std::string_view line) const
    {
        const std::size_t colon = line.find(": "), first = line.find(" | "),
                          second = first == std::string_view::npos ? first : line.find('|', first + 2);
        if (colon == std::string_view::npos || second == std::string_view::npos || first < colon)
            fault(inQuotes(line) + " is no instruction of a plan");
        return {line.substr(0, colon), withoutBlanks(line.substr(colon + 2, first - colon - 2)),
                withoutBlanks(line.substr(first + 3, second > first + 3 ? second - first - 3 : 0)),
                withoutBlanks(line.substr(second + 1))};
    }

    void add(const Line4& line)
    {
        const int tensor = m_graph.find(line.tensor);
        if (tensor < 0)
            fault("the stage has no tensor " + inQuotes(line.tensor));
        const bool computes =
            m_graph.node(tensor).leaf == Leaf::None && line.action.find("->") != std::string_view::npos;
        if (computes)
            addComputation(tensor, line);
        else
            addStep(tensor, line);
        m_present.insert(m_program.instructions.back().after);
    }

    void addComputation(int node, const Line4& line)
    {
        if (!m_computed.insert(node).second)
            fault(m_graph.node(node).name + " is computed a second time");
        for (const Triple& triple : m_theory.triplesOf(node)) {
            std::vector<Property> before;
            for (std::size_t o = 0; o < triple.needs.size(); ++o)
                before.push_back({m_graph.node(node).operands[o], triple.needs[o]});
            if (sharingRules()[static_cast<std::size_t>(triple.rule)].text != line.action
                || relationsText(before) != line.before || toString(triple.result) != line.after)
                continue;
            for (std::size_t o = 0; o < before.size(); ++o)
                checkPresent(before[o], triple.kinds[o] == Need::Once || triple.kinds[o] == Need::Factors);
            m_program.instructions.push_back(computation(m_theory, node, triple, std::move(before)));
            return;
        }
        fault(fmt::format("{} cannot be computed by {} from {} to {}", m_graph.node(node).name, inQuotes(line.action),
                          inQuotes(line.before), inQuotes(line.after)));
    }

    void addStep(int tensor, const Line4& line)
    {
        const bool unreduced = line.action == unreducedLoad;
        const bool loads = unreduced || line.action == nameOf(Action::Load);
        if (loads && m_graph.node(tensor).leaf == Leaf::None)
            fault(m_graph.node(tensor).name + " is computed, not loaded");
        std::vector<Step> steps;
        if (unreduced && m_graph.node(tensor).leaf == Leaf::Parameter)
            steps.push_back(m_theory.wholeLoadOf(tensor));
        else if (loads && !unreduced)
            steps = m_theory.loadsOf(tensor);
        else if (!loads)
            for (const Property& held : m_present)
                if (held.tensor == tensor && toString(held.relation) == line.before)
                    steps = m_theory.stepsFrom(tensor, held.relation);
        for (const Step& step : steps) {
            if (toString(step.to) != line.after || (!loads && nameOf(step.action) != line.action))
                continue;
            ShardingInstruction made;
            made.tensor = tensor;
            made.action = step.action;
            if (!loads)
                made.before.push_back({tensor, step.from});
            made.after = {tensor, step.to};
            made.unreduced = unreduced;
            made.charges = step.charges;
            made.heldWhole = step.heldWhole;
            made.heldSplit = step.heldSplit;
            if (loads && !(unreduced ? m_unreduced : m_loaded).insert(made.after).second)
                fault(m_graph.node(tensor).name + " is loaded a second time");
            m_program.instructions.push_back(std::move(made));
            return;
        }
        fault(fmt::format("{} has no {} from {} to {} here", m_graph.node(tensor).name, inQuotes(line.action),
                          inQuotes(line.before), inQuotes(line.after)));
    }

    /// A parameter whose consumer makes its gradient whole is loaded unreduced, and only such a one.
    void checkPresent(const Property& property, bool unreduced) const
    {
        const bool leaf = m_graph.node(property.tensor).leaf == Leaf::Parameter;
        const bool there = unreduced ? m_unreduced.contains(property)
                                     : m_present.contains(property) && !(leaf && m_unreduced.contains(property));
        if (!there)
            fault(fmt::format("no line before makes {} {}", m_graph.node(property.tensor).name,
                              toString(property.relation)));
    }

    const Theory& m_theory;
    const TensorGraph& m_graph;
    ShardingProgram m_program;
    std::size_t m_line = 0;
    std::set<int> m_computed;
    std::set<Property> m_present, m_loaded, m_unreduced;
};

Ratios ofGraph(const std::vector<double>& ratios, const TensorGraph& graph)
{
    return Ratios(static_cast<std::size_t>(graph.segments()), ratios);
}

/// The program of a plan that states one.
ShardingPlan readPlan(const StatedPlan& stated, const TensorGraph& graph, const Machine& machine)
{
    ShardingPlan plan;
    plan.ratios = ofGraph(stated.ratios, graph);
    checkRatios(plan.ratios, graph, machine);
    plan.program = programOfLines(stated.program, theoryOf(graph, machine, plan.ratios, RuleSet::All, stated.strategy));
    plan.cost = costOf(plan.program, machine, plan.ratios);
    plan.memory = memoryOf(plan.program, plan.ratios);
    plan.gap = 1; // no bound is known
    return plan;
}

} // namespace

std::vector<std::string> programLines(const ShardingProgram& program, const TensorGraph& graph)
{
    std::vector<std::string> lines;
    for (const ShardingInstruction& one : program.instructions) {
        const std::string_view action = one.computes()  ? sharingRules()[static_cast<std::size_t>(one.rule)].text
                                        : one.unreduced ? unreducedLoad
                                                        : nameOf(one.action);
        lines.push_back(fmt::format("{}: {} | {} | {}", graph.node(one.tensor).name, action, relationsText(one.before),
                                    toString(one.after.relation)));
    }
    return lines;
}

ShardingProgram programOfLines(const std::vector<std::string>& lines, const Theory& theory)
{
    if (lines.empty())
        throw Error("program", "it has no lines", "leave \"program\" out to have it found");
    return ProgramReader(theory).read(lines);
}

ShardingPlan planOf(const StatedPlan& stated, const TensorGraph& graph, const Machine& machine, PlanOptions options)
{
    if (!stated.program.empty())
        return readPlan(stated, graph, machine);
    options.strategy = stated.strategy;
    if (!stated.ratios.empty())
        options.ratios = ofGraph(stated.ratios, graph);
    return planSharding(graph, machine, options);
}

StatedPlan statedPlan(const ShardingPlan& plan, const TensorGraph& graph, Strategy strategy)
{
    return {strategy, plan.ratios.front(), programLines(plan.program, graph)};
}

void checkPlan(const StatedPlan& stated, const Workload& workload, int first, int count, const Cluster& group)
{
    if (!stated.program.empty() && stated.ratios.empty())
        throw Error("ratios", "the plan has a program and no shares", "give every member's share, or leave both out");
    if (stated.program.empty() && stated.ratios.empty())
        return;
    // A quick check before building the graph: a layer has many lines.
    if (!stated.program.empty() && static_cast<int>(stated.program.size()) < count)
        throw Error("program", fmt::format("{} lines for {} layers", stated.program.size(), count),
                    "leave \"program\" out to have it found");
    const Machine machine = machineOf(group);
    if (stated.program.empty()) {
        checkShares(stated.ratios, machine);
        return;
    }
    readPlan(stated, stageGraph(workload.shape, workload.state, stageRange(workload, first, count)), machine);
}

} // namespace pipewright::sharding
