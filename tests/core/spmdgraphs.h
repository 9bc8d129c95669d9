// SPDX-License-Identifier: GPL-3.0-or-later
// Random small graphs, machines and ratios, and the cheapest program by trying every one: any order of loads
// and communications before a node, slices of their own, all relations remembered, no bounds, no dominance.
#pragma once

#include "core/spmd/program.h"

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

namespace pipewright::test {

using namespace pipewright::spmd;

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
                sameShape.push_back(
                    graph.add(name, below(2) ? "add" : "multiply",
                              {last, sameShape[static_cast<std::size_t>(below(static_cast<int>(sameShape.size())))]},
                              {}, segment));
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

class EveryProgram {
public:
    explicit EveryProgram(const Theory& theory) : m_theory(theory)
    {
        const TensorGraph& graph = theory.graph();
        for (int t = 0; t < graph.size(); ++t)
            if (graph.node(t).leaf == Leaf::None)
                m_order.push_back(t);
    }
    double cheapest() { return from(0, {}); }

private:
    using Held = std::map<int, std::set<Relation>>;

    double priceOf(const std::vector<Charge>& charges) const
    {
        return seconds(charges, m_theory.machine(), m_theory.ratios());
    }

    double from(std::size_t position, Held held)
    {
        if (position == m_order.size())
            return 0;
        std::erase_if(held, [&](const auto& entry) {
            const auto& users = m_theory.consumers()[static_cast<std::size_t>(entry.first)];
            return users.empty() || users.back() < m_order[position];
        });
        const auto known = m_known.find({position, held});
        if (known != m_known.end())
            return known->second;
        double best = std::numeric_limits<double>::infinity();
        const int node = m_order[position];
        for (const Triple& triple : m_theory.triplesOf(node))
            supply(node, triple, 0, held, priceOf(triple.charges), [&](const Held& supplied, double cost) {
                Held next = supplied;
                next[node].insert(triple.result);
                best = std::min(best, cost + from(position + 1, next));
            });
        m_known[{position, held}] = best;
        return best;
    }

    template<typename Done>
    void supply(int node, const Triple& triple, std::size_t operand, const Held& held, double cost, const Done& done)
    {
        if (operand == triple.needs.size()) {
            done(held, cost);
            return;
        }
        const int tensor = m_theory.graph().node(node).operands[operand];
        if (triple.kinds[operand] == Need::Once || triple.kinds[operand] == Need::Factors) {
            supply(node, triple, operand + 1, held, cost, done);
            return;
        }
        const Leaf leaf = m_theory.graph().node(tensor).leaf;
        const auto mine = held.find(tensor);
        const bool some = mine != held.end() && !mine->second.empty();
        if (some && mine->second.contains(triple.needs[operand])) {
            supply(node, triple, operand + 1, held, cost, done);
            return; // to get it a second time can only cost more
        }
        // Every set of relations that loads and communications in any order lead to, at its least price.
        std::map<std::set<Relation>, double> reached{{some ? mine->second : std::set<Relation>(), 0}};
        for (bool changed = true; changed;) {
            changed = false;
            for (const auto& [relations, paid] : std::map(reached)) {
                const auto take = [&, &relations = relations, &paid = paid](const Step& step) {
                    std::set<Relation> more = relations;
                    more.insert(step.to);
                    const double price = paid + priceOf(step.charges);
                    const auto [entry, isNew] = reached.emplace(std::move(more), price);
                    changed = changed || isNew || price < entry->second;
                    entry->second = std::min(entry->second, price);
                };
                if (leaf == Leaf::Input || (leaf == Leaf::Parameter && relations.empty()))
                    for (const Step& load : m_theory.loadsOf(tensor))
                        take(load);
                for (const Relation relation : relations)
                    for (const Step& step : m_theory.stepsFrom(tensor, relation))
                        take(step);
            }
        }
        for (const auto& [relations, paid] : reached)
            if (relations.contains(triple.needs[operand])) {
                Held next = held;
                next[tensor] = relations;
                supply(node, triple, operand + 1, next, cost + paid, done);
            }
    }

    const Theory& m_theory;
    std::vector<int> m_order;
    std::map<std::pair<std::size_t, Held>, double> m_known;
};

} // namespace pipewright::test
