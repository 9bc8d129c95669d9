// SPDX-License-Identifier: GPL-3.0-or-later
// Checks that the devices hold in a step what the program's properties say. Every instruction's property is compared
// with the value that a single device computes: equal, joined or added up, as its relation says. Its gradient is
// compared by the dual relation: a tensor that is whole has a gradient that is a sum over devices, and the reverse.
#pragma once

#include "executor/host/hostbackend.h"
#include "executor/sharding/groupmember.h"
#include "executor/sharding/nodemaths.h"
#include "executor/sharding/shardingrun.h"

#include <QStringList>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace pipewright::sharding {

/// What a single device computes, tensor by tensor.
struct WholeStep {
    WholeStep(const TensorGraph& graph, const LeafValues& leaves)
    {
        const auto host = createHostBackend(1);
        MemberDevice member(host->device(0));
        std::vector<Tensor> made, grads;
        const auto operandsOf = [&](const Node& node) {
            Operands operands;
            for (const int operand : node.operands)
                operands.push_back(&made[operand]);
            return operands;
        };
        for (int t = 0; t < graph.size(); ++t) {
            const Node& node = graph.node(t);
            made.push_back(node.leaf == Leaf::None ? NodeMaths(graph, node).forward(member, operandsOf(node))
                                                   : member.put(leaves.at(t)));
            grads.push_back(member.zeros(made.back().shape));
            values.push_back(member.get(made.back()));
        }
        member.operations().run(kernels::Fill{grads.back().data, 1});
        for (int t = graph.size() - 1; t >= 0; --t) {
            const Node& node = graph.node(t);
            if (node.leaf != Leaf::None)
                continue;
            const std::vector<Tensor> found =
                NodeMaths(graph, node).backward(member, operandsOf(node), made[t], grads[t]);
            for (std::size_t o = 0; o < found.size(); ++o)
                if (graph.node(node.operands[o]).leaf != Leaf::Input) {
                    accumulate(member, grads[node.operands[o]], found[o]);
                    shares[{t, static_cast<int>(o)}] = member.get(found[o]);
                }
        }
    }

    std::vector<HostTensor> values;                   ///< of every tensor
    std::map<std::pair<int, int>, HostTensor> shares; ///< gradient of a node's operand, by node and operand index
};

/// A member's values and gradients, copied to the host.
class MemberRecord final : public MemberObserver {
public:
    void value(MemberDevice& member, const Property& property, const Tensor& value) override
    {
        m_values[property] = member.get(value);
    }
    void gradient(MemberDevice& member, const Property& property, const Tensor& gradient) override
    {
        m_last[property] = member.get(gradient);
        m_seen.try_emplace(property, m_last[property]);
    }

    const std::map<Property, HostTensor>& values() const { return m_values; }
    const std::map<Property, HostTensor>& seenGradients() const { return m_seen; } ///< before any sum over members
    const std::map<Property, HostTensor>& lastGradients() const { return m_last; } ///< as they are stored

private:
    std::map<Property, HostTensor> m_values, m_seen, m_last;
};

inline double largestOf(const HostTensor& tensor)
{
    double largest = 0;
    for (const float value : tensor.data)
        largest = std::max(largest, std::abs(static_cast<double>(value)));
    return largest;
}

using Held = std::vector<const HostTensor*>;

inline HostTensor summed(const Held& parts)
{
    HostTensor sum = *parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i)
        accumulate(sum, *parts[i]);
    return sum;
}

/// Largest error of a tensor that is whole on every device.
inline double worstOf(const Held& held, const HostTensor& truth)
{
    double error = 0;
    for (const HostTensor* one : held)
        error = std::max(error, difference(*one, truth));
    return error;
}

class PropertyCheck {
public:
    PropertyCheck(const TensorGraph& graph, const ShardingProgram& program, const WholeStep& truth,
                  const std::vector<MemberRecord>& members)
        : m_graph(graph), m_program(program), m_truth(truth), m_members(members)
    {
        checkValues();
        checkGradients();
    }

    int values = 0, gradients = 0; ///< instructions of which these were checked
    QStringList failures;          ///< what does not hold, in order; gradients after the others

private:
    void checkValues()
    {
        for (const ShardingInstruction& instruction : m_program.instructions) {
            const Property& property = instruction.after;
            Held held;
            for (const MemberRecord& member : m_members)
                held.push_back(&member.values().at(property));
            const HostTensor& truth = m_truth.values[property.tensor];
            double error = 0;
            switch (property.relation.kind) {
            case RelationKind::Identity: error = worstOf(held, truth); break;
            case RelationKind::Gather: error = difference(joined(held, property.relation.dim), truth); break;
            case RelationKind::Reduce: error = difference(summed(held), truth); break;
            }
            ++values;
            note(instruction, error, tolerance, propertyText({property}, m_graph));
        }
    }

    void checkGradients()
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
            ++gradients;
            note(*it, error, gradientTolerance, fmt::format("the gradient of {}", propertyText({property}, m_graph)));
        }
    }

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
                    if (const auto share = m_truth.shares.find({it->tensor, static_cast<int>(o)});
                        share != m_truth.shares.end() && !share->second.shape.empty())
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
        if (!(error <= allowed))
            failures << QString::fromStdString(fmt::format("{}: {} does not hold: off by {:.2g} of the largest element",
                                                           actionText(instruction, m_graph), what, error));
    }

    static constexpr double tolerance = 2e-4;         // relative to the largest element
    static constexpr double gradientTolerance = 1e-3; // sums over rows lose more digits
    static constexpr double smallestGradient = 1e-3;  // relative to the largest of all; smaller ones are only rounding

    const TensorGraph& m_graph;
    const ShardingProgram& m_program;
    const WholeStep& m_truth;
    const std::vector<MemberRecord>& m_members;
    std::map<Property, HostTensor> m_expected;
};

} // namespace pipewright::sharding
