// SPDX-License-Identifier: GPL-3.0-or-later
// Successors of a state: for every triple of the next node, every way to acquire its operands by at most three
// communications each, with dominated choices removed. Acquisitions are cached per position and present relations.
// O(triples × product of the operands' acquisitions) per expansion.
#include "core/sharding/searchspace.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::sharding {

namespace {

constexpr std::size_t longestPath = 3; // Reduce, one cut, another cut, Identity

Mask bitMask(int bit)
{
    return Mask(1) << bit;
}

bool noLarger(const std::vector<double>& a, const std::vector<double>& b)
{
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i] > b[i])
            return false;
    return true;
}

} // namespace

SearchSpace::SearchSpace(const Theory& theory, std::vector<double> memoryPrice)
    : m_theory(theory), m_price(std::move(memoryPrice))
{
    const Machine& machine = theory.machine();
    for (int d = 0; d < machine.devices(); ++d) {
        const auto same = [&](int other) {
            const auto alike = [&](const std::vector<double>& shares) { return shares[d] == shares[other]; };
            return machine.memory[d] == machine.memory[other]
                   && std::all_of(theory.ratios().begin(), theory.ratios().end(), alike);
        };
        if (machine.memory[d] > 0 && std::none_of(m_limited.begin(), m_limited.end(), same))
            m_limited.push_back(d);
    }
    m_price.resize(m_limited.size(), 0.0);
    for (int t = 0; t < theory.graph().size(); ++t) {
        if (theory.graph().node(t).leaf == Leaf::None)
            m_order.push_back(t);
        m_relations.push_back(relationsOf(t));
        const Step whole = theory.wholeLoadOf(t);
        m_wholeLoads.push_back({{0, priced(whole), {}, memoryFor(whole.heldWhole, 0, 0)}});
    }
    findLive();
    priceTriples();
    findBounds();
}

SearchSpace::Relations SearchSpace::relationsOf(int tensor) const
{
    Relations relations;
    relations.list = m_theory.relationsOf(tensor);
    const Node& node = m_theory.graph().node(tensor);
    if (relations.list.size() > 32)
        throw Error(node.name, fmt::format("{} acquisitions to cut this tensor", relations.list.size()),
                    "use fewer segments or dimensions");
    relations.tracked = node.leaf == Leaf::None || m_theory.consumers()[tensor].size() > 1;
    const auto indexOf = [&relations](Relation relation) {
        return static_cast<int>(std::find(relations.list.begin(), relations.list.end(), relation)
                                - relations.list.begin());
    };
    for (std::size_t bit = 0; bit < relations.list.size(); ++bit) {
        auto& edges = relations.edges.emplace_back();
        if (relations.list[bit].kind == RelationKind::Gather)
            relations.pieces |= bitMask(static_cast<int>(bit));
        for (Step& step : m_theory.stepsFrom(tensor, relations.list[bit])) {
            if (step.action == Action::Slice)
                continue; // Identity implies the pieces: closed()
            const double cost = priced(step);
            const int to = indexOf(step.to);
            edges.push_back({to, cost, std::move(step)});
        }
    }
    if (node.leaf != Leaf::None)
        for (Step& step : m_theory.loadsOf(tensor)) {
            const double cost = priced(step);
            const int to = indexOf(step.to);
            relations.loads.push_back({to, cost, std::move(step)});
        }
    return relations;
}

std::vector<double> SearchSpace::memoryFor(double whole, double split, int segment) const
{
    std::vector<double> bytes;
    for (const int device : m_limited)
        bytes.push_back(whole + split * m_theory.ratios()[segment][device]);
    return bytes;
}

double SearchSpace::priced(const Step& step) const
{
    double cost = seconds(step.charges, m_theory.machine(), m_theory.ratios());
    const std::vector<double> bytes = memoryFor(step.heldWhole, step.heldSplit, step.to.segment);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        cost += m_price[i] * bytes[i];
    return cost;
}

int SearchSpace::bitOf(int tensor, Relation relation) const
{
    const auto& list = m_relations[tensor].list;
    return static_cast<int>(std::find(list.begin(), list.end(), relation) - list.begin());
}

Mask SearchSpace::closed(int tensor, Mask mask) const
{
    return mask & 1 ? mask | m_relations[tensor].pieces : mask; // bit 0 is Identity
}

Mask SearchSpace::reduced(int, Mask mask, Mask needs) const
{
    // Only needed relations count; with all of them, or with Identity, the others make no difference.
    return (mask & needs) == needs || (mask & 1) ? mask & needs : mask;
}

void SearchSpace::findLive()
{
    const TensorGraph& graph = m_theory.graph();
    std::vector<int> from(static_cast<std::size_t>(graph.size()), 0), until(static_cast<std::size_t>(graph.size()), -1);
    std::vector<int> positionOf(static_cast<std::size_t>(graph.size()), -1);
    for (int p = 0; p < positions(); ++p)
        positionOf[nodeAt(p)] = p;
    for (int t = 0; t < graph.size(); ++t) {
        const auto& users = m_theory.consumers()[t];
        if (users.empty() || !m_relations[t].tracked)
            continue;
        from[t] = 1 + (graph.node(t).leaf == Leaf::None ? positionOf[t] : positionOf[users.front()]);
        until[t] = positionOf[users.back()];
    }
    for (int p = 0; p <= positions(); ++p) {
        auto& live = m_live.emplace_back();
        for (int t = 0; t < graph.size(); ++t)
            if (from[t] <= p && until[t] >= p && m_relations[t].tracked)
                live.push_back(t);
    }
    for (int p = 0; p < positions(); ++p) {
        auto& slots = m_slots.emplace_back(m_live[p]);
        auto& next = m_slotOfNext.emplace_back();
        for (const int t : m_live[p + 1]) {
            auto at = std::find(slots.begin(), slots.end(), t);
            if (at == slots.end()) {
                slots.push_back(t);
                at = slots.end() - 1;
            }
            next.push_back(static_cast<int>(at - slots.begin()));
        }
    }
}

void SearchSpace::priceTriples()
{
    const TensorGraph& graph = m_theory.graph();
    for (int p = 0; p < positions(); ++p) {
        const int node = nodeAt(p);
        auto& priced = m_triples.emplace_back();
        for (const Triple& triple : m_theory.triplesOf(node)) {
            PricedTriple& entry = priced.emplace_back();
            for (std::size_t o = 0; o < triple.needs.size(); ++o)
                entry.needBits.push_back(bitOf(graph.node(node).operands[o], triple.needs[o]));
            entry.result = closed(node, bitMask(bitOf(node, triple.result)));
            const auto [whole, split] = m_theory.heldBytes(node, triple.result);
            entry.memory = memoryFor(whole, split, triple.result.segment);
            entry.cost = seconds(triple.charges, m_theory.machine(), m_theory.ratios());
            for (std::size_t i = 0; i < entry.memory.size(); ++i)
                entry.cost += m_price[i] * entry.memory[i];
        }
    }
    // Relations that later nodes can use, from the last position back.
    std::vector<Mask> used(static_cast<std::size_t>(graph.size()), 0);
    m_needs.resize(static_cast<std::size_t>(positions()));
    for (int p = positions() - 1; p >= 0; --p) {
        for (const int t : m_live[p + 1])
            m_needs[p].push_back(used[t]);
        for (const PricedTriple& triple : m_triples[p])
            for (std::size_t o = 0; o < triple.needBits.size(); ++o)
                used[graph.node(nodeAt(p)).operands[o]] |= bitMask(triple.needBits[o]);
    }
}

void SearchSpace::findBounds()
{
    const std::size_t limits = m_limited.size();
    const TensorGraph& graph = m_theory.graph();
    m_atLeast.assign(static_cast<std::size_t>(positions()) + 1, 0.0);
    m_memoryAtLeast.assign(static_cast<std::size_t>(positions()) + 1, std::vector<double>(limits, 0.0));
    m_memoryAtMost = m_memoryAtLeast;
    for (int p = positions() - 1; p >= 0; --p) {
        const auto at = static_cast<std::size_t>(p);
        const int node = nodeAt(p);
        double cheapest = infinite;
        std::vector<double> least(limits, infinite), most(limits, 0.0);
        for (std::size_t k = 0; k < m_triples[at].size(); ++k) {
            double cost = m_triples[at][k].cost;
            std::vector<double> memory = m_triples[at][k].memory;
            for (std::size_t o = 0; o < graph.node(node).operands.size(); ++o) {
                const int operand = graph.node(node).operands[o];
                if (m_relations[operand].tracked)
                    continue;
                const auto& acquisitions = acquisitionsFor(p, k, o, 0);
                double loading = infinite;
                std::vector<double> kept(limits, infinite);
                for (const Acquisition& acquisition : acquisitions) {
                    loading = std::min(loading, acquisition.cost);
                    for (std::size_t i = 0; i < limits; ++i)
                        kept[i] = std::min(kept[i], acquisition.memory[i]);
                }
                cost += loading;
                for (std::size_t i = 0; i < limits; ++i)
                    memory[i] += kept[i];
            }
            cheapest = std::min(cheapest, cost);
            for (std::size_t i = 0; i < limits; ++i)
                least[i] = std::min(least[i], memory[i]);
        }
        const auto addAll = [&](int tensor, bool leaf) {
            for (std::size_t i = 0; i < limits; ++i) {
                for (const Relation relation : m_relations[tensor].list) {
                    const auto [whole, split] = m_theory.heldBytes(tensor, relation);
                    most[i] += memoryFor(whole, split, relation.segment)[i];
                }
                if (leaf)
                    most[i] += m_theory.wholeLoadOf(tensor).heldWhole;
            }
        };
        if (limits > 0) {
            addAll(node, false);
            for (const int operand : graph.node(node).operands)
                if (graph.node(operand).leaf != Leaf::None)
                    addAll(operand, true);
        }
        m_atLeast[at] = m_atLeast[at + 1] + cheapest;
        for (std::size_t i = 0; i < limits; ++i) {
            m_memoryAtLeast[at][i] = m_memoryAtLeast[at + 1][i] + least[i];
            m_memoryAtMost[at][i] = m_memoryAtMost[at + 1][i] + most[i];
        }
    }
}

void SearchSpace::searchPaths(int tensor, const Edge& edge, int goal, const Acquisition& sofar,
                              std::vector<Acquisition>& found) const
{
    if (sofar.after & bitMask(edge.to))
        return;
    Acquisition next = sofar;
    next.after = closed(tensor, next.after | bitMask(edge.to));
    next.cost += edge.cost;
    next.path.push_back(&edge);
    const std::vector<double> bytes = memoryFor(edge.step.heldWhole, edge.step.heldSplit, edge.step.to.segment);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        next.memory[i] += bytes[i];
    if (next.after & bitMask(goal)) {
        found.push_back(std::move(next));
        return;
    }
    if (next.path.size() < longestPath)
        for (const Edge& further : m_relations[tensor].edges[edge.to])
            searchPaths(tensor, further, goal, next, found);
}

const std::vector<SearchSpace::Acquisition>& SearchSpace::acquire(int tensor, Mask mask, int bit) const
{
    const std::uint64_t key = (std::uint64_t(tensor) * 32 + static_cast<std::uint64_t>(bit)) << 32 | mask;
    const auto [entry, isNew] = m_acquisitions.try_emplace(key);
    if (!isNew)
        return entry->second;
    std::vector<Acquisition> found;
    const Acquisition start{mask, 0, {}, std::vector<double>(m_limited.size(), 0.0)};
    const Relations& relations = m_relations[tensor];
    if (mask & bitMask(bit)) {
        found.push_back(start);
    } else {
        if (mask == 0 || m_theory.graph().node(tensor).leaf == Leaf::Input)
            for (const Edge& load : relations.loads)
                searchPaths(tensor, load, bit, start, found);
        for (std::size_t held = 0; held < relations.list.size(); ++held)
            if (mask & bitMask(static_cast<int>(held)))
                for (const Edge& edge : relations.edges[held])
                    searchPaths(tensor, edge, bit, start, found);
    }
    // Ties go to the first: the requested relation itself before relations it can be sliced from.
    std::stable_partition(found.begin(), found.end(),
                          [bit](const Acquisition& one) { return one.path.empty() || one.path.back()->to == bit; });
    if (!relations.tracked)
        for (Acquisition& one : found)
            one.after = bitMask(bit); // no other consumer
    // Drop dominated acquisitions: no cheaper, no leaner and with no more relations.
    std::vector<Acquisition>& kept = entry->second;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto makesUseless = [&](std::size_t j) {
            const Acquisition &a = found[j], &b = found[i];
            if (j == i || a.cost > b.cost || (a.after & b.after) != b.after || !noLarger(a.memory, b.memory))
                return false;
            const bool equal = a.cost == b.cost && a.after == b.after && noLarger(b.memory, a.memory);
            return !equal || j < i;
        };
        bool useful = true;
        for (std::size_t j = 0; j < found.size() && useful; ++j)
            useful = !makesUseless(j);
        if (useful)
            kept.push_back(found[i]);
    }
    return kept;
}

const std::vector<SearchSpace::Acquisition>& SearchSpace::acquisitionsFor(int position, std::size_t triple,
                                                                          std::size_t operand, Mask mask) const
{
    const int node = nodeAt(position);
    const int tensor = m_theory.graph().node(node).operands[operand];
    const Need kind = m_theory.triplesOf(node)[triple].kinds[operand];
    if (kind == Need::Once || kind == Need::Factors)
        return m_wholeLoads[tensor];
    return acquire(tensor, mask, m_triples[position][triple].needBits[operand]);
}

void SearchSpace::forEachMove(int position, const Mask* masks, const Visit& visit) const
{
    const auto at = static_cast<std::size_t>(position);
    const Node& node = m_theory.graph().node(nodeAt(position));
    const std::vector<int>& slots = m_slots[at];
    std::vector<Mask> now(slots.size(), 0), next(m_slotOfNext[at].size());
    std::copy(masks, masks + m_live[at].size(), now.begin());
    std::vector<int> slotOfOperand;
    for (const int operand : node.operands) {
        const auto found = std::find(slots.begin(), slots.end(), operand);
        slotOfOperand.push_back(found == slots.end() ? -1 : static_cast<int>(found - slots.begin()));
    }
    const auto result = std::find(slots.begin(), slots.end(), nodeAt(position)) - slots.begin();

    Move move;
    const std::function<void(std::size_t)> choose = [&](std::size_t operand) {
        if (operand == node.operands.size()) {
            for (std::size_t i = 0; i < next.size(); ++i) {
                const int slot = m_slotOfNext[at][i];
                next[i] = reduced(slots[slot], now[slot], m_needs[at][i]);
            }
            visit(move, next);
            return;
        }
        const int slot = slotOfOperand[operand];
        const Mask before = slot < 0 ? 0 : now[slot];
        const auto& acquisitions = acquisitionsFor(position, static_cast<std::size_t>(move.triple), operand, before);
        const double cost = move.cost;
        const std::vector<double> memory = move.memory;
        for (std::size_t w = 0; w < acquisitions.size(); ++w) {
            move.choices[operand] = static_cast<std::int8_t>(w);
            move.cost = cost + acquisitions[w].cost;
            for (std::size_t i = 0; i < memory.size(); ++i)
                move.memory[i] = memory[i] + acquisitions[w].memory[i];
            if (slot >= 0)
                now[slot] = acquisitions[w].after;
            choose(operand + 1);
        }
        move.cost = cost;
        move.memory = memory;
        if (slot >= 0)
            now[slot] = before;
    };
    for (std::size_t k = 0; k < m_triples[at].size(); ++k) {
        const PricedTriple& triple = m_triples[at][k];
        move.triple = static_cast<int>(k);
        move.cost = triple.cost;
        move.memory = triple.memory;
        if (static_cast<std::size_t>(result) < now.size())
            now[result] = triple.result;
        choose(0);
    }
}

ShardingProgram SearchSpace::programOf(const std::vector<Move>& moves) const
{
    ShardingProgram program;
    const TensorGraph& graph = m_theory.graph();
    std::vector<Mask> masks;
    std::vector<std::vector<Relation>> held(static_cast<std::size_t>(graph.size()));
    const auto emit = [&](int tensor, const Step& step, bool unreduced) {
        ShardingInstruction instruction;
        instruction.tensor = tensor;
        instruction.action = step.action;
        if (step.action != Action::Load)
            instruction.before.push_back({tensor, step.from});
        instruction.after = {tensor, step.to};
        instruction.unreduced = unreduced;
        instruction.charges = step.charges;
        instruction.heldWhole = step.heldWhole;
        instruction.heldSplit = step.heldSplit;
        program.instructions.push_back(std::move(instruction));
        held[tensor].push_back(step.to);
    };
    for (std::size_t p = 0; p < moves.size(); ++p) {
        const int position = static_cast<int>(p), node = nodeAt(position);
        const Move& move = moves[p];
        const Triple& triple = m_theory.triplesOf(node)[move.triple];
        std::vector<Mask> now(m_slots[p].size(), 0);
        std::copy(masks.begin(), masks.end(), now.begin());
        std::vector<Property> before;
        for (std::size_t o = 0; o < triple.needs.size(); ++o) {
            const int operand = graph.node(node).operands[o];
            const auto slot =
                static_cast<std::size_t>(std::find(m_slots[p].begin(), m_slots[p].end(), operand) - m_slots[p].begin());
            const Acquisition& acquisition = acquisitionsFor(position, static_cast<std::size_t>(move.triple), o,
                                                             slot < now.size() ? now[slot] : 0)[move.choices[o]];
            if (slot < now.size())
                now[slot] = acquisition.after;
            if (triple.kinds[o] == Need::Once || triple.kinds[o] == Need::Factors)
                emit(operand, m_theory.wholeLoadOf(operand), true);
            for (const Edge* edge : acquisition.path)
                emit(operand, edge->step, false);
            auto& mine = held[operand];
            if (std::find(mine.begin(), mine.end(), triple.needs[o]) == mine.end())
                emit(operand, {Action::Slice, identityRelation, triple.needs[o], {}, 0, 0}, false);
            before.push_back({operand, triple.needs[o]});
        }
        program.instructions.push_back(computation(m_theory, node, triple, std::move(before)));
        held[node].push_back(triple.result);
        if (const auto slot =
                static_cast<std::size_t>(std::find(m_slots[p].begin(), m_slots[p].end(), node) - m_slots[p].begin());
            slot < now.size())
            now[slot] = m_triples[p][move.triple].result;
        masks.clear();
        for (std::size_t i = 0; i < m_slotOfNext[p].size(); ++i) {
            const auto slot = static_cast<std::size_t>(m_slotOfNext[p][i]);
            masks.push_back(reduced(m_slots[p][slot], now[slot], m_needs[p][i]));
        }
    }
    return program;
}

} // namespace pipewright::sharding
