// SPDX-License-Identifier: GPL-3.0-or-later
// Random small graphs, machines and ratios, and the cheapest program by trying every one: any order of loads
// and communications before a node, separately derived slices, all relations kept, no bounds, no dominance.
#pragma once

#include "core/sharding/shardingprogram.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

namespace pipewright::test {

using namespace pipewright::sharding;

inline double parameterElements(const TensorGraph& graph)
{
    double sum = 0;
    for (const Node& node : graph.nodes())
        if (node.leaf == Leaf::Parameter)
            sum += node.elements();
    return sum;
}

class RandomGraphs {
public:
    explicit RandomGraphs(unsigned seed) : m_random(seed) {}

    int below(int n) { return static_cast<int>(m_random() % static_cast<unsigned>(n)); }
    double real(double low, double high)
    {
        return low + (high - low) * static_cast<double>(m_random() % 100'000) / 100'000;
    }

    TensorGraph graph(int most, int segments)
    {
        TensorGraph graph;
        graph.bytesPerElement = 1 + below(4);
        graph.stateBytesPerParameter = graph.bytesPerElement * (1 + below(4));
        const std::int64_t rows = 1 + below(8);
        std::int64_t width = 1 + below(8);
        std::vector<int> sameShape{graph.addInput("x", {rows, width})};
        const int count = 1 + below(most - 1);
        int shared = -1;
        for (int i = 0; i < count; ++i) {
            const std::string name = "n" + std::to_string(i);
            const int segment = below(segments);
            const int last = sameShape.back();
            switch (below(6)) {
            case 0: sameShape.push_back(graph.add(name, "gelu", {last}, {}, segment)); break;
            case 1:
                sameShape.push_back(graph.add(name, below(2) ? "add" : "multiply",
                                              {last, sameShape[below(static_cast<int>(sameShape.size()))]}, {},
                                              segment));
                break;
            case 2:
                sameShape.push_back(
                    graph.add(name, "layer_norm", {last, graph.addParameter(name + ".g", {width})}, {}, segment));
                break;
            case 3:
                if (shared < 0)
                    shared = graph.addParameter(name + ".tied", {width, width});
                if (graph.node(shared).shape == Shape{width, width}) {
                    sameShape.push_back(graph.add(name, "linear", {last, shared}, {}, segment));
                    break;
                }
                [[fallthrough]];
            default: {
                const std::int64_t next = 1 + below(8);
                std::vector<int> operands{last, graph.addParameter(name + ".w", {next, width})};
                if (below(3) == 0)
                    operands.push_back(graph.addParameter(name + ".b", {next}));
                sameShape = {graph.add(name, "linear", std::move(operands), {}, segment)};
                width = next;
            }
            }
        }
        graph.add("loss", "sum", {sameShape.back()});
        return graph.check().empty() ? graph : this->graph(most, segments); // an operand may have been left unused
    }

    Machine machine(int devices)
    {
        Cluster cluster;
        for (int d = 0; d < devices; ++d)
            cluster.devices.push_back({"device", 0, 1.0 + below(5), below(2) ? 1.0 + below(20) : 0.0, 1});
        for (int kind = 0; kind < collectiveKinds; ++kind)
            cluster.collectives[static_cast<Collective>(kind)] = {below(2) ? below(20) * Nanoseconds(1'000'000'000) : 0,
                                                                  0.05 * (1 + below(100))};
        cluster.groupedCollectives = below(2) == 0;
        return machineOf(cluster);
    }

    Ratios ratios(int segments, int devices)
    {
        Ratios all;
        for (int s = 0; s < segments; ++s) {
            std::vector<double> shares;
            double sum = 0;
            for (int d = 0; d < devices; ++d)
                sum += shares.emplace_back(1 + below(6));
            for (double& share : shares)
                share /= sum;
            all.push_back(s > 0 && below(3) == 0 ? all.front() : shares);
        }
        return all;
    }

private:
    std::mt19937 m_random;
};

/// The relations that hold for a tensor are bits, in the order of Theory::relationsOf(). The sets reachable from a set
/// do not depend on other tensors, so they are computed once.
class EveryProgram {
public:
    explicit EveryProgram(const Theory& theory)
        : m_theory(theory), m_relations(tensors()), m_steps(tensors()), m_reached(tensors())
    {
        const TensorGraph& graph = theory.graph();
        for (int t = 0; t < graph.size(); ++t) {
            const auto at = static_cast<std::size_t>(t);
            m_relations[at] = theory.relationsOf(t);
            for (const Relation relation : m_relations[at])
                for (const Step& step : theory.stepsFrom(t, relation))
                    m_steps[at].push_back({bit(t, relation), bit(t, step.to), priceOf(step.charges)});
            if (graph.node(t).leaf == Leaf::None)
                m_order.push_back(t);
        }
        for (const int node : m_order) {
            auto& strategies = m_strategies.emplace_back();
            for (const Triple& triple : theory.triplesOf(node))
                strategies.push_back({&triple, priceOf(triple.charges)});
        }
    }
    double cheapest() { return from(0, Held(tensors(), 0)); }

private:
    using Bits = std::uint32_t;
    using Held = std::vector<Bits>; ///< per tensor
    struct PricedStep {
        Bits from, to;
        double price;
    };
    struct Strategy {
        const Triple* triple;
        double price;
    };

    std::size_t tensors() const { return static_cast<std::size_t>(m_theory.graph().size()); }

    Bits bit(int tensor, Relation relation) const
    {
        const auto& all = m_relations[tensor];
        const auto found = std::find(all.begin(), all.end(), relation);
        if (found == all.end())
            throw std::logic_error("a relation that the tensor cannot take");
        return Bits{1} << (found - all.begin());
    }

    double priceOf(const std::vector<Charge>& charges) const
    {
        return seconds(charges, m_theory.machine(), m_theory.ratios());
    }

    double from(std::size_t position, Held held)
    {
        if (position == m_order.size())
            return 0;
        for (std::size_t t = 0; t < held.size(); ++t)
            if (const auto& users = m_theory.consumers()[t]; users.empty() || users.back() < m_order[position])
                held[t] = 0;
        const auto known = m_known.find({position, held});
        if (known != m_known.end())
            return known->second;
        double best = std::numeric_limits<double>::infinity();
        const int node = m_order[position];
        for (const Strategy& strategy : m_strategies[position]) {
            const Bits result = bit(node, strategy.triple->result);
            supply(node, *strategy.triple, 0, held, strategy.price, [&](const Held& supplied, double cost) {
                Held next = supplied;
                next[node] |= result;
                best = std::min(best, cost + from(position + 1, std::move(next)));
            });
        }
        m_known[{position, std::move(held)}] = best;
        return best;
    }

    /// Every set of relations that loads and communications in any order lead to, at its least price.
    const std::map<Bits, double>& reachedFrom(int tensor, Bits start)
    {
        const auto [entry, isNew] = m_reached[tensor].try_emplace(start);
        std::map<Bits, double>& reached = entry->second;
        if (!isNew)
            return reached;
        reached[start] = 0;
        const Leaf leaf = m_theory.graph().node(tensor).leaf;
        std::vector<PricedStep> loads;
        if (leaf != Leaf::None)
            for (const Step& load : m_theory.loadsOf(tensor))
                loads.push_back({0, bit(tensor, load.to), priceOf(load.charges)});
        for (bool changed = true; changed;) {
            changed = false;
            for (const auto& [relations, paid] : std::map(reached)) {
                const auto take = [&changed, &reached, held = relations, before = paid](const PricedStep& step) {
                    const double price = before + step.price;
                    const auto [more, isMore] = reached.emplace(held | step.to, price);
                    changed = changed || isMore || price < more->second;
                    more->second = std::min(more->second, price);
                };
                if (leaf == Leaf::Input || relations == 0) // a parameter is loaded once
                    for (const PricedStep& load : loads)
                        take(load);
                for (const PricedStep& step : m_steps[tensor])
                    if (relations & step.from)
                        take(step);
            }
        }
        return reached;
    }

    template<typename Done>
    void supply(int node, const Triple& triple, std::size_t operand, const Held& held, double cost, const Done& done)
    {
        if (operand == triple.needs.size()) {
            done(held, cost);
            return;
        }
        if (triple.kinds[operand] == Need::Once || triple.kinds[operand] == Need::Factors) {
            supply(node, triple, operand + 1, held, cost, done);
            return;
        }
        const int tensor = m_theory.graph().node(node).operands[operand];
        const auto at = static_cast<std::size_t>(tensor);
        const Bits needed = bit(tensor, triple.needs[operand]);
        if (held[at] & needed) {
            supply(node, triple, operand + 1, held, cost, done);
            return; // reaching it a second time can only cost more
        }
        for (const auto& [relations, paid] : reachedFrom(tensor, held[at]))
            if (relations & needed) {
                Held next = held;
                next[at] = relations;
                supply(node, triple, operand + 1, next, cost + paid, done);
            }
    }

    const Theory& m_theory;
    std::vector<int> m_order;
    std::vector<std::vector<Strategy>> m_strategies; ///< per position
    std::vector<std::vector<Relation>> m_relations;
    std::vector<std::vector<PricedStep>> m_steps;
    std::vector<std::map<Bits, std::map<Bits, double>>> m_reached;
    std::map<std::pair<std::size_t, Held>, double> m_known;
};

} // namespace pipewright::test
