// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/propertycheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace pipewright::sharding {

namespace {

constexpr std::size_t mostFailures = 8;
constexpr double gradientTolerance = 5;   // times that of values: sums over rows lose more digits
constexpr double smallestGradient = 1e-3; // relative to the largest of all; smaller gradients are only rounding

double largestOf(const HostTensor& tensor)
{
    double largest = 0;
    for (const float value : tensor.data)
        largest = std::max(largest, std::abs(static_cast<double>(value)));
    return largest;
}

using Held = std::vector<const HostTensor*>;

/// Largest error of a tensor that is whole on every device.
double worstOf(const Held& held, const HostTensor& truth)
{
    double error = 0;
    for (const HostTensor* one : held)
        error = std::max(error, difference(*one, truth));
    return error;
}

class PropertyCheck {
public:
    PropertyCheck(const TensorGraph& graph, const ShardingProgram& program, const std::vector<MemberRecord>& members,
                  const ShardingRunOptions& options, ShardingRun& run)
        : m_graph(graph), m_program(program), m_members(members), m_options(options), m_run(run)
    {
    }

    void values()
    {
        for (const ShardingInstruction& instruction : m_program.instructions) {
            const Property& property = instruction.after;
            Held held;
            for (const MemberRecord& member : m_members)
                held.push_back(&member.values().at(property));
            const HostTensor& truth = m_options.check->values[property.tensor];
            double error = 0;
            switch (property.relation.kind) {
            case RelationKind::Identity: error = worstOf(held, truth); break;
            case RelationKind::Gather: error = difference(joined(held, property.relation.dim), truth); break;
            case RelationKind::Reduce: error = difference(summed(held), truth); break;
            }
            ++m_run.verified;
            note(instruction, error, m_options.tolerance, propertyText({property}, m_graph));
        }
    }

    void gradients()
    {
        expect();
        double scale = 0;
        for (const auto& [property, truth] : m_expected)
            scale = std::max(scale, largestOf(truth));
        for (auto it = m_program.instructions.rbegin(); it != m_program.instructions.rend(); ++it) {
            const Property& property = it->after;
            const auto expected = m_expected.find(property);
            if (expected == m_expected.end() || m_graph.node(property.tensor).leaf == Leaf::Input)
                continue;
            const HostTensor& truth = expected->second;
            // The error is relative to the largest element of this gradient, or to a part of the largest of all if this
            // one is only rounding.
            const double own = std::max(largestOf(truth), 1e-6),
                         relative = own / std::max(own, smallestGradient * scale);
            double error = relative * gradientError(*it, truth);
            if (!it->computes() && it->action == Action::Load)
                error = std::max(error, relative * storedError(property, truth));
            ++m_run.verifiedGradients;
            note(*it, error, gradientTolerance * m_options.tolerance,
                 fmt::format("the gradient of {}", propertyText({property}, m_graph)));
        }
    }

private:
    /// The expected gradient of each property: the sum of the shares from the nodes that use it and of the gradients of
    /// the properties that were made from it.
    void expect()
    {
        HostTensor one{Shape{}};
        one.data.front() = 1;
        m_expected[m_program.instructions.back().after] = one;
        for (auto it = m_program.instructions.rbegin(); it != m_program.instructions.rend(); ++it) {
            if (it->computes()) {
                for (std::size_t o = 0; o < it->before.size(); ++o)
                    if (const auto share = m_options.check->shares.find({it->tensor, static_cast<int>(o)});
                        share != m_options.check->shares.end() && !share->second.shape.empty())
                        add(it->before[o], share->second);
            } else if (it->action != Action::Load) {
                if (const auto back = m_expected.find(it->after); back != m_expected.end())
                    add(it->before.front(), HostTensor(back->second));
            }
        }
    }

    void add(const Property& property, const HostTensor& share)
    {
        const auto [found, isNew] = m_expected.try_emplace(property, share);
        if (!isNew)
            accumulate(found->second, share);
    }

    /// Relations are dual: the gradient of a sum is whole everywhere, that of a whole tensor is a sum.
    double gradientError(const ShardingInstruction& instruction, const HostTensor& truth) const
    {
        const Property& property = instruction.after;
        Held held;
        for (const MemberRecord& member : m_members) {
            const auto found = member.seenGradients().find(property);
            if (found == member.seenGradients().end())
                return std::numeric_limits<double>::infinity();
            held.push_back(&found->second);
        }
        switch (property.relation.kind) {
        case RelationKind::Gather: return difference(joined(held, property.relation.dim), truth);
        case RelationKind::Reduce: return worstOf(held, truth);
        case RelationKind::Identity: break;
        }
        return instruction.unreduced ? worstOf(held, truth) : difference(summed(held), truth);
    }

    double storedError(const Property& property, const HostTensor& truth) const
    {
        Held held;
        for (const MemberRecord& member : m_members)
            held.push_back(&member.lastGradients().at(property));
        return property.relation.kind == RelationKind::Gather ? difference(joined(held, property.relation.dim), truth)
                                                              : worstOf(held, truth);
    }

    void note(const ShardingInstruction& instruction, double error, double allowed, const std::string& what)
    {
        m_run.largestError = std::max(m_run.largestError, error);
        if (!(error <= allowed) && m_run.failures.size() < mostFailures)
            m_run.failures.push_back(
                {Severity::Error, actionText(instruction, m_graph),
                 fmt::format("{} does not hold: off by {:.2g} of the largest element", what, error),
                 "this is a mistake in the rule or the maths of the operation; please report it"});
    }

    const TensorGraph& m_graph;
    const ShardingProgram& m_program;
    const std::vector<MemberRecord>& m_members;
    const ShardingRunOptions& m_options;
    ShardingRun& m_run;
    std::map<Property, HostTensor> m_expected;
};

} // namespace

void MemberRecord::value(MemberDevice& member, const Property& property, const Tensor& value)
{
    m_values[property] = member.get(value);
}

void MemberRecord::gradient(MemberDevice& member, const Property& property, const Tensor& gradient)
{
    const auto [seen, isFirst] = m_seen.try_emplace(property);
    HostTensor here = member.get(gradient);
    if (isFirst)
        seen->second = here;
    m_last[property] = std::move(here);
}

void checkProperties(const TensorGraph& graph, const ShardingProgram& program, const std::vector<MemberRecord>& members,
                     const ShardingRunOptions& options, ShardingRun& run)
{
    PropertyCheck check(graph, program, members, options, run);
    check.values();
    check.gradients();
}

} // namespace pipewright::sharding
