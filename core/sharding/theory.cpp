// SPDX-License-Identifier: GPL-3.0-or-later
// Applies the rules to a graph: union-find gives the dimensions that are cut together, each rule is instantiated per
// node and leading dimension, and every triple and communication gets its charges. O(nodes × rules × dimensions).
#include "core/sharding/theory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright::sharding {

namespace {

/// Dimensions of all tensors that are cut together have the same number of parts.
class DimensionClasses {
public:
    int add(std::int64_t length)
    {
        m_parent.push_back(static_cast<int>(m_parent.size()));
        m_parts.push_back(length);
        return m_parent.back();
    }
    int root(int dim)
    {
        while (m_parent[dim] != dim)
            dim = m_parent[dim] = m_parent[m_parent[dim]];
        return dim;
    }
    void join(int a, int b)
    {
        a = root(a), b = root(b);
        if (a == b)
            return;
        m_parent[b] = a;
        limit(a, m_parts[b]);
    }
    void limit(int dim, std::int64_t parts)
    {
        std::int64_t& own = m_parts[root(dim)];
        own = std::gcd(own, parts);
    }
    std::int64_t parts(int dim) { return m_parts[root(dim)]; }

private:
    std::vector<int> m_parent;
    std::vector<std::int64_t> m_parts;
};

/// Number of leading dimensions that '*' matches.
int starsOf(const TensorGraph& graph, const Node& node, const Operation& operation)
{
    for (std::size_t i = 0; i < node.operands.size(); ++i)
        if (operation.operands[i].hasStar())
            return static_cast<int>(graph.node(node.operands[i]).shape.size()
                                    - (operation.operands[i].letters.size() - 1));
    return 0;
}

/// The dimension that a token cuts; `star` is the one of the leading dimensions that [*] means.
int dimOf(const RuleToken& token, const OperandForm& form, int stars, int star)
{
    return token.letter == '*' ? star : form.position(token.letter, stars);
}

} // namespace

Theory::Theory(const TensorGraph& graph, const Machine& machine, const Ratios& ratios, RuleSet rules)
    : m_graph(graph), m_machine(machine), m_ratios(ratios), m_consumers(graph.consumers())
{
    if (Diagnostics found = graph.check(); !found.empty())
        throw Error(std::move(found));
    for (std::size_t s = 0; s < ratios.size(); ++s) {
        const auto alike = [&](const std::vector<double>& other) {
            return std::equal(other.begin(), other.end(), ratios[s].begin(),
                              [](double a, double b) { return std::abs(a - b) < 1e-12; });
        };
        m_cutOfSegment.push_back(static_cast<int>(std::find_if(ratios.begin(), ratios.end(), alike) - ratios.begin()));
    }
    findParts();
    for (int node = 0; node < graph.size(); ++node)
        m_triples.push_back(graph.node(node).leaf == Leaf::None ? findTriples(node, rules) : std::vector<Triple>{});
}

void Theory::findParts()
{
    DimensionClasses classes;
    std::vector<int> first;
    for (const Node& node : m_graph.nodes()) {
        first.push_back(-1);
        for (const std::int64_t length : node.shape) {
            const int added = classes.add(length);
            if (first.back() < 0)
                first.back() = added;
        }
    }
    const auto indexOf = [&first](int tensor, int dim) { return first[tensor] + dim; };
    for (int i = 0; i < m_graph.size(); ++i) {
        const Node& node = m_graph.node(i);
        if (node.leaf != Leaf::None)
            continue;
        const Operation& operation = operations()[node.operation];
        const int stars = starsOf(m_graph, node, operation);
        for (const SharingRule& rule : sharingRules()) {
            if (rule.operation != node.operation || rule.split == 0)
                continue;
            for (int star = 0; star < (rule.split == '*' ? stars : 1); ++star) {
                int joint = -1;
                const auto include = [&](const RuleToken& token, const OperandForm& form, int tensor) {
                    if (token.need != Need::Split)
                        return;
                    const int dim = indexOf(tensor, dimOf(token, form, stars, star));
                    if (joint < 0)
                        joint = dim;
                    classes.join(joint, dim);
                    if (operation.wholeLetters.find(token.letter) != std::string::npos)
                        classes.limit(dim, static_cast<std::int64_t>(node.attributes.at(operation.partsAttribute)));
                };
                for (std::size_t o = 0; o < node.operands.size(); ++o)
                    include(rule.operands[o], operation.operands[o], node.operands[o]);
                include(rule.result, operation.result, i);
            }
        }
    }
    for (int i = 0; i < m_graph.size(); ++i) {
        auto& parts = m_parts.emplace_back();
        for (std::size_t d = 0; d < m_graph.node(i).shape.size(); ++d)
            parts.push_back(classes.parts(indexOf(i, static_cast<int>(d))));
    }
}

std::vector<Charge> Theory::chargesOf(int node, const SharingRule& rule, bool split) const
{
    const double flops = forwardFlops(m_graph, node), traffic = forwardTraffic(m_graph, node);
    const Node& self = m_graph.node(node);
    const bool hasParameter = std::any_of(self.operands.begin(), self.operands.end(),
                                          [this](int t) { return m_graph.node(t).leaf == Leaf::Parameter; });
    std::vector<Charge> charges;
    const auto compute = [&](Pass pass, double work, double bytes, bool shared) {
        if (work == 0 && bytes == 0)
            return;
        Charge charge;
        charge.pass = pass;
        charge.segment = shared ? self.segment : -1;
        (shared ? charge.splitFlops : charge.fixedFlops) = work;
        (shared ? charge.splitTraffic : charge.fixedTraffic) = bytes;
        charges.push_back(charge);
    };
    compute(Pass::Forward, flops, traffic, split);
    const double back = traffic > 0 ? 2 * traffic - m_graph.bytesOf(node)
                                    : 0; // reads the result's gradient and the operands, writes theirs
    if (hasParameter && flops > 0) {
        compute(Pass::InputGrad, flops, 0, split);
        compute(Pass::WeightGrad, flops, 0, split && !rule.factors());
    } else {
        compute(Pass::InputGrad, backwardFlops(m_graph, node), back, split);
    }
    if (rule.factors()) // the factors of a weight gradient: the input and the result's gradient
        for (const int factor : {self.operands.front(), node}) {
            Charge charge;
            charge.pass = Pass::WeightGrad;
            charge.segment = self.segment;
            charge.bytes = m_graph.bytesOf(factor);
            charges.push_back(
                cheaperOf(Collective::AllGather, Collective::GroupedBroadcast, charge, m_machine, m_ratios));
        }
    return charges;
}

std::vector<Triple> Theory::findTriples(int index, RuleSet allowed) const
{
    const Node& node = m_graph.node(index);
    const Operation& operation = operations()[node.operation];
    const int stars = starsOf(m_graph, node, operation);
    const int cut = cutOf(node.segment);
    std::vector<Triple> found;
    const auto ruleTable = sharingRules();
    for (std::size_t r = 0; r < ruleTable.size(); ++r) {
        const SharingRule& rule = ruleTable[r];
        if (rule.operation != node.operation || (allowed == RuleSet::Published && rule.origin == RuleOrigin::Added))
            continue;
        for (int star = 0; star < (rule.split == '*' ? stars : 1); ++star) {
            Triple triple;
            triple.rule = static_cast<int>(r);
            bool possible = true;
            const auto relation = [&](const RuleToken& token, const OperandForm& form, int tensor) {
                if (token.need == Need::Reduce)
                    return reduceRelation;
                if (token.need != Need::Split)
                    return identityRelation;
                const int dim = dimOf(token, form, stars, star);
                possible = possible && parts(tensor, dim) > 1;
                // A share of a longer table has not the rows that the share of a piece of a sequence reads.
                if (!operation.atLeast.empty() && token.letter == operation.atLeast.front())
                    possible = possible
                               && m_graph.node(tensor).shape[static_cast<std::size_t>(dim)]
                                      == letterSizes(m_graph, node).sizes.at(operation.atLeast.back());
                return gatherRelation(dim, cut);
            };
            for (std::size_t o = 0; o < node.operands.size(); ++o) {
                const int operand = node.operands[o];
                Need need = rule.operands[o].need;
                triple.needs.push_back(relation(rule.operands[o], operation.operands[o], operand));
                const bool ownParameter =
                    m_graph.node(operand).leaf == Leaf::Parameter && m_consumers[operand].size() == 1;
                possible = possible && (need != Need::Factors || ownParameter);
                possible = possible && !(need == Need::Reduce && m_graph.node(operand).leaf != Leaf::None);
                if (need == Need::Once && !ownParameter)
                    need = Need::Identity;
                triple.kinds.push_back(need);
            }
            triple.result = relation(rule.result, operation.result, index);
            if (!possible)
                continue;
            triple.charges = chargesOf(index, rule, rule.split != 0);
            found.push_back(std::move(triple));
        }
    }
    return found;
}

void Theory::restrict(int node, const std::function<bool(const Triple&)>& keep)
{
    auto& own = m_triples[node];
    if (std::any_of(own.begin(), own.end(), keep))
        std::erase_if(own, [&keep](const Triple& triple) { return !keep(triple); });
}

void Theory::restrictLoads(int tensor, const std::function<bool(const Step&)>& keep)
{
    std::vector<Step> own = loadsOf(tensor);
    if (std::any_of(own.begin(), own.end(), keep)) {
        std::erase_if(own, [&keep](const Step& load) { return !keep(load); });
        m_restrictedLoads[tensor] = std::move(own);
    }
}

std::vector<Relation> Theory::relationsOf(int tensor) const
{
    std::vector<Relation> relations{identityRelation, reduceRelation};
    std::vector<int> cuts{cutOf(m_graph.node(tensor).segment)};
    for (const int user : m_consumers[tensor])
        if (const int cut = cutOf(m_graph.node(user).segment); std::find(cuts.begin(), cuts.end(), cut) == cuts.end())
            cuts.push_back(cut);
    for (std::size_t d = 0; d < m_graph.node(tensor).shape.size(); ++d)
        if (parts(tensor, static_cast<int>(d)) > 1)
            for (const int cut : cuts)
                relations.push_back(gatherRelation(static_cast<int>(d), cut));
    return relations;
}

Charge Theory::exchange(Pass pass, Collective padded, Collective grouped, int tensor, Relation piece) const
{
    Charge charge;
    charge.pass = pass;
    charge.segment = piece.segment;
    charge.bytes = m_graph.bytesOf(tensor);
    return cheaperOf(padded, grouped, charge, m_machine, m_ratios);
}

std::pair<double, double> Theory::heldBytes(int tensor, Relation relation) const
{
    const double bytes = m_graph.bytesOf(tensor);
    return relation.kind == RelationKind::Gather ? std::pair(0.0, bytes) : std::pair(bytes, 0.0);
}

std::vector<Step> Theory::stepsFrom(int tensor, Relation from) const
{
    const bool parameter = m_graph.node(tensor).leaf == Leaf::Parameter;
    const Pass backward = parameter ? Pass::WeightGrad : Pass::InputGrad;
    const auto bytes = [this, tensor](Relation to) { return heldBytes(tensor, to); };
    std::vector<Step> steps;
    const auto add = [&](Action action, Relation to, std::vector<Charge> charges) {
        const auto [whole, split] = action == Action::Slice ? std::pair(0.0, 0.0) : bytes(to);
        steps.push_back({action, from, to, std::move(charges), whole, split});
    };
    for (const Relation to : relationsOf(tensor)) {
        const bool toPiece = to.kind == RelationKind::Gather;
        switch (from.kind) {
        case RelationKind::Identity:
            if (toPiece)
                add(Action::Slice, to, {});
            break;
        case RelationKind::Reduce:
            if (to.kind == RelationKind::Identity) {
                Charge charge;
                charge.communicates = true;
                charge.collective = Collective::AllReduce;
                charge.bytes = m_graph.bytesOf(tensor);
                Charge back = charge;
                back.pass = backward;
                add(Action::AllReduce, to, {charge, back});
            } else if (toPiece) {
                add(Action::ReduceScatter, to,
                    {exchange(Pass::Forward, Collective::ReduceScatter, Collective::GroupedReduce, tensor, to),
                     exchange(backward, Collective::AllGather, Collective::GroupedBroadcast, tensor, to)});
            }
            break;
        case RelationKind::Gather:
            if (to.kind == RelationKind::Identity) {
                add(Action::AllGather, to,
                    {exchange(Pass::Forward, Collective::AllGather, Collective::GroupedBroadcast, tensor, from),
                     exchange(backward, Collective::ReduceScatter, Collective::GroupedReduce, tensor, from)});
            } else if (toPiece && to != from) {
                Charge charge;
                charge.communicates = true;
                charge.collective = Collective::AllToAll;
                charge.bytes = m_graph.bytesOf(tensor);
                charge.segment = from.segment;
                charge.otherSegment = to.segment;
                Charge back = charge;
                back.pass = backward;
                add(Action::AllToAll, to, {charge, back});
            }
            break;
        }
    }
    return steps;
}

Step Theory::wholeLoadOf(int tensor) const
{
    Step step;
    step.to = identityRelation;
    step.heldWhole = m_graph.node(tensor).elements() * m_graph.stateBytesPerParameter;
    return step;
}

std::vector<Step> Theory::loadsOf(int tensor) const
{
    if (const auto few = m_restrictedLoads.find(tensor); few != m_restrictedLoads.end())
        return few->second;
    std::vector<Step> loads;
    const bool parameter = m_graph.node(tensor).leaf == Leaf::Parameter;
    for (const Relation to : relationsOf(tensor)) {
        if (to.kind == RelationKind::Reduce)
            continue;
        Step load = parameter ? wholeLoadOf(tensor) : Step{};
        load.to = to;
        if (!parameter)
            std::tie(load.heldWhole, load.heldSplit) = heldBytes(tensor, to);
        else if (to.kind == RelationKind::Gather)
            std::swap(load.heldWhole, load.heldSplit);
        const bool wantsGradient = m_graph.node(tensor).leaf != Leaf::Input;
        if (wantsGradient && to.kind == RelationKind::Identity) {
            Charge reduce;
            reduce.communicates = true;
            reduce.collective = Collective::AllReduce;
            reduce.pass = parameter ? Pass::WeightGrad : Pass::InputGrad;
            reduce.bytes = m_graph.bytesOf(tensor);
            load.charges.push_back(reduce);
        }
        loads.push_back(std::move(load));
    }
    return loads;
}

} // namespace pipewright::sharding
