// SPDX-License-Identifier: GPL-3.0-or-later
// Turns a program's charges into a linear program with one epigraph variable per distinct maximum, solves it by
// linearprogram.h and normalises the shares.
#include "core/sharding/ratios.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace pipewright::sharding {

namespace {

double valueOf(const Line& line, const Ratios& ratios)
{
    return line.segment < 0 ? line.constant : line.constant + line.slope * ratios[line.segment][line.device];
}

/// Terms without constant parts, scaled to a largest coefficient of 1, equal ones merged.
std::vector<RatioProblem::Term> distinctTerms(const std::vector<RatioProblem::Term>& terms)
{
    std::map<std::string, RatioProblem::Term> byShape;
    for (RatioProblem::Term term : terms) {
        const auto varies = [](const Line& line) { return line.segment >= 0 && line.slope != 0; };
        if (std::none_of(term.lines.begin(), term.lines.end(), varies))
            continue;
        const auto lowest = std::min_element(term.lines.begin(), term.lines.end(), [](const Line& a, const Line& b) {
                                return a.constant < b.constant;
                            })->constant;
        double scale = 0;
        for (Line& line : term.lines) {
            line.constant -= lowest;
            scale = std::max({scale, line.constant, line.slope});
        }
        std::string key;
        for (Line& line : term.lines) {
            line.constant /= scale;
            line.slope /= scale;
            key += fmt::format("{} {} {:.13e} {:.13e};", line.device, line.segment, line.constant, line.slope);
        }
        term.weight *= scale;
        const auto [found, isNew] = byShape.emplace(std::move(key), term);
        if (!isNew)
            found->second.weight += term.weight;
    }
    std::vector<RatioProblem::Term> distinct;
    for (auto& [key, term] : byShape)
        distinct.push_back(std::move(term));
    return distinct;
}

} // namespace

RatioProblem ratioProblemOf(const ShardingProgram& program, const TensorGraph& graph, const Machine& machine,
                            int segments, bool untied)
{
    RatioProblem problem;
    problem.segments = segments;
    problem.devices = machine.devices();
    double whole = 0;
    std::vector<double> split(static_cast<std::size_t>(segments), 0.0);
    for (const ShardingInstruction& instruction : program.instructions) {
        for (const Charge& charge : instruction.charges)
            problem.terms.push_back({linesOf(charge, machine), 1});
        whole += instruction.heldWhole;
        split[instruction.after.relation.segment] += instruction.heldSplit;
        if (!instruction.computes() || untied)
            continue;
        const int own = graph.node(instruction.tensor).segment;
        const auto tie = [&](const Property& property) {
            if (const Relation r = property.relation; r.kind == RelationKind::Gather && r.segment != own)
                if (const std::pair pair(std::min(own, r.segment), std::max(own, r.segment));
                    std::find(problem.tied.begin(), problem.tied.end(), pair) == problem.tied.end())
                    problem.tied.push_back(pair);
        };
        for (const Property& property : instruction.before)
            tie(property);
        tie(instruction.after);
    }
    for (int d = 0; d < machine.devices(); ++d)
        if (const double limit = machine.memory[d]; limit > 0)
            problem.memory.push_back({d, whole, split, limit});
    return problem;
}

LinearProgram linearProgramOf(const RatioProblem& problem)
{
    LinearProgram program;
    const int shares = problem.segments * problem.devices;
    const auto share = [&problem](int segment, int device) { return segment * problem.devices + device; };
    const std::vector<RatioProblem::Term> terms = distinctTerms(problem.terms);
    program.objective.assign(static_cast<std::size_t>(shares), 0.0);
    double heaviest = 0;
    for (const RatioProblem::Term& term : terms)
        heaviest = std::max(heaviest, term.weight);
    for (const RatioProblem::Term& term : terms)
        program.objective.push_back(term.weight / heaviest);
    for (int s = 0; s < problem.segments; ++s) {
        LinearProgram::Row row;
        for (int d = 0; d < problem.devices; ++d)
            row.terms.emplace_back(share(s, d), 1.0);
        row.limit = 1;
        row.equal = true;
        program.rows.push_back(std::move(row));
    }
    for (std::size_t t = 0; t < terms.size(); ++t)
        for (const Line& line : terms[t].lines) {
            LinearProgram::Row row{{{shares + static_cast<int>(t), -1.0}}, -line.constant, false};
            if (line.segment >= 0 && line.slope != 0)
                row.terms.emplace_back(share(line.segment, line.device), line.slope);
            program.rows.push_back(std::move(row));
        }
    for (const RatioProblem::MemoryRow& memory : problem.memory) {
        LinearProgram::Row row{{}, 1 - memory.whole / memory.limit, false};
        for (int s = 0; s < problem.segments; ++s)
            if (const double bytes = memory.split[s]; bytes > 0)
                row.terms.emplace_back(share(s, memory.device), bytes / memory.limit);
        program.rows.push_back(std::move(row));
    }
    for (const auto& [a, b] : problem.tied)
        for (int d = 0; d < problem.devices; ++d)
            program.rows.push_back({{{share(a, d), 1.0}, {share(b, d), -1.0}}, 0, true});
    return program;
}

std::optional<Ratios> bestRatios(const RatioProblem& problem)
{
    for (const RatioProblem::MemoryRow& memory : problem.memory)
        if (memory.whole > memory.limit)
            return std::nullopt;
    const auto values = solve(linearProgramOf(problem));
    if (!values)
        return std::nullopt;
    Ratios ratios;
    for (int s = 0; s < problem.segments; ++s) {
        const auto begin = values->begin() + static_cast<std::ptrdiff_t>(s) * problem.devices;
        auto& shares = ratios.emplace_back(begin, begin + problem.devices);
        for (double& one : shares)
            one = one < 1e-12 ? 0 : one; // also negative values from rounding
        const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
        for (double& one : shares)
            one /= sum;
    }
    for (const auto& [a, b] : problem.tied) // bitwise equal, so that they count as cut alike
        ratios[std::max(a, b)] = ratios[std::min(a, b)];
    return ratios;
}

double valueOf(const RatioProblem& problem, const Ratios& ratios)
{
    double sum = 0;
    for (const RatioProblem::Term& term : problem.terms) {
        double longest = 0;
        for (const Line& line : term.lines)
            longest = std::max(longest, valueOf(line, ratios));
        sum += term.weight * longest;
    }
    return sum;
}

} // namespace pipewright::sharding
