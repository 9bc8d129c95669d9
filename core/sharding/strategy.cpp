// SPDX-License-Identifier: GPL-3.0-or-later
// A strategy keeps, of every node's triples, those of its kind. Megatron's follow from the graph alone: a matrix whose
// input is whole is cut by columns, one whose input is cut by rows. What lies beyond the rules is not part of a plan:
// TAG also places whole operations on single devices, and Megatron computes the loss on cut logits, which are gathered
// here. O(nodes · triples).
#include "core/sharding/strategy.h"

#include "core/sharding/theory.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace pipewright::sharding {

namespace {

constexpr std::array<StrategyFacts, strategyCount> table{{
    {Strategy::Hap, "hap", "HAP", ShareChoice::Found},
    {Strategy::Even, "even", "even ratios", ShareChoice::Even},
    {Strategy::Proportional, "proportional", "ratios by rate", ShareChoice::ByRate},
    {Strategy::DataParallel, "data-parallel", "data parallel, proportional", ShareChoice::ByRate},
    {Strategy::DataParallelEven, "data-parallel-even", "data parallel, even", ShareChoice::Even},
    {Strategy::DeepSpeed, "deepspeed", "like DeepSpeed", ShareChoice::Even},
    {Strategy::Tag, "tag", "like TAG", ShareChoice::ByRate},
    {Strategy::Megatron, "megatron", "Megatron, columns and rows", ShareChoice::Found},
    {Strategy::MegatronSequence, "megatron-sequence", "Megatron, sequence parallel", ShareChoice::Found},
}};

constexpr int batchDim = 0, tokenDim = 1, expertDim = 1; // of [batch, token, …]; of [group, expert, slot, …]

bool cutsAlong(Relation relation, int dim)
{
    return relation.kind == RelationKind::Gather && relation.dim == dim;
}

bool cutsNothing(const Triple& triple)
{
    return std::all_of(triple.needs.begin(), triple.needs.end(), [](Relation need) { return need == identityRelation; })
           && std::all_of(triple.kinds.begin(), triple.kinds.end(), [](Need kind) { return kind == Need::Identity; });
}

/// Which of a node's triples a strategy keeps.
class Choice {
public:
    Choice(const TensorGraph& graph, Strategy strategy) : m_graph(graph), m_strategy(strategy)
    {
        m_cut.resize(static_cast<std::size_t>(graph.size()), false);
        m_ofExperts = m_cut;
        const auto any = [&](const Node& node, const std::vector<bool>& of) {
            return std::any_of(node.operands.begin(), node.operands.end(), [&](int operand) { return of[operand]; });
        };
        for (int index = 0; index < graph.size(); ++index) {
            const Node& node = graph.node(index);
            if (node.leaf != Leaf::None)
                continue;
            m_ofExperts[index] = isA(node, "expert_linear") || (!isA(node, "combine") && any(node, m_ofExperts));
            const bool operandCut = any(node, m_cut);
            // Columns in, rows out; what works element by element, or head by head, stays cut.
            if (isMatrix(node))
                m_cut[index] = !operandCut && !feeds(index, "route");
            else
                m_cut[index] = operandCut && staysCut(node);
        }
    }

    bool keeps(int index, const Triple& triple) const
    {
        switch (m_strategy) {
        case Strategy::Hap:
        case Strategy::Even:
        case Strategy::Proportional: return true;
        case Strategy::DataParallel:
        case Strategy::DataParallelEven:
        case Strategy::Tag: return cutsAlong(triple.needs.front(), batchDim);
        case Strategy::DeepSpeed: return cutsAlong(triple.needs.front(), m_ofExperts[index] ? expertDim : batchDim);
        case Strategy::Megatron:
        case Strategy::MegatronSequence: return isMegatron(index, triple);
        }
        return true;
    }

    /// Which loads of a parameter a strategy keeps: copies on all members, or pieces that are gathered for use.
    bool keepsLoad(const Step& load) const
    {
        switch (m_strategy) {
        case Strategy::DataParallel:
        case Strategy::DataParallelEven: return load.to == identityRelation;
        case Strategy::DeepSpeed: return load.to.kind == RelationKind::Gather;
        case Strategy::Hap:
        case Strategy::Even:
        case Strategy::Proportional:
        case Strategy::Tag:
        case Strategy::Megatron:
        case Strategy::MegatronSequence: return true;
        }
        return true;
    }

private:
    static bool isA(const Node& node, std::string_view operation)
    {
        return operations()[static_cast<std::size_t>(node.operation)].name == operation;
    }
    static bool isMatrix(const Node& node) { return isA(node, "linear") || isA(node, "expert_linear"); }
    static bool staysCut(const Node& node)
    {
        constexpr std::array<std::string_view, 9> alike{"gelu",  "gelu_erf", "relu",      "silu",     "multiply",
                                                        "scale", "soft_cap", "head_norm", "attention"};
        return std::any_of(alike.begin(), alike.end(), [&](std::string_view name) { return isA(node, name); });
    }
    bool feeds(int index, std::string_view operation) const
    {
        return std::any_of(m_graph.nodes().begin(), m_graph.nodes().end(), [&](const Node& node) {
            return node.leaf == Leaf::None && isA(node, operation)
                   && std::find(node.operands.begin(), node.operands.end(), index) != node.operands.end();
        });
    }
    int lastDim(int index) const { return static_cast<int>(m_graph.node(index).shape.size()) - 1; }

    bool isMegatron(int index, const Triple& triple) const
    {
        const Node& node = m_graph.node(index);
        const bool operandCut = m_cut[node.operands.front()];
        const Relation x = triple.needs.front();
        if (isA(node, "embedding")) // the vocabulary is cut
            return cutsAlong(triple.needs[1], 0) && triple.result == reduceRelation;
        if (isMatrix(node) && m_cut[index])
            return x == identityRelation && cutsAlong(triple.result, lastDim(index));
        if (isMatrix(node) && operandCut)
            return cutsAlong(x, lastDim(node.operands.front())) && triple.result == reduceRelation;
        if (m_cut[index])
            return cutsAlong(x, lastDim(node.operands.front()));
        if (isA(node, "sum") && operandCut)
            return cutsAlong(x, lastDim(node.operands.front()));
        if (m_strategy == Strategy::MegatronSequence && isBetween(node))
            return cutsAlong(x, tokenDim) || (isA(node, "combine") && cutsNothing(triple));
        return cutsNothing(triple);
    }

    /// True for operations that work token by token and can therefore run on part of the tokens; routing needs all
    /// tokens.
    bool isBetween(const Node& node) const
    {
        constexpr std::array<std::string_view, 8> byToken{"layer_norm", "rms_norm",  "add",           "scale",
                                                          "positions",  "hand_over", "cross_entropy", "combine"};
        return m_graph.node(node.operands.front()).shape.size() > tokenDim
               && std::any_of(byToken.begin(), byToken.end(), [&](std::string_view name) { return isA(node, name); });
    }

    const TensorGraph& m_graph;
    Strategy m_strategy;
    std::vector<bool> m_cut, m_ofExperts; ///< per tensor: cut along its last dimension; computed by experts
};

} // namespace

const std::array<StrategyFacts, strategyCount>& strategies()
{
    return table;
}

const StrategyFacts& factsOf(Strategy strategy)
{
    return table[static_cast<std::size_t>(strategy)];
}

std::string_view nameOf(Strategy strategy)
{
    const auto at = static_cast<std::size_t>(strategy);
    return at < table.size() ? table[at].name : std::string_view();
}

std::optional<Strategy> strategyNamed(std::string_view name)
{
    const auto* const found =
        std::find_if(table.begin(), table.end(), [&](const StrategyFacts& facts) { return facts.name == name; });
    return found == table.end() ? std::nullopt : std::optional(found->strategy);
}

Theory theoryOf(const TensorGraph& graph, const Machine& machine, const Ratios& ratios, RuleSet rules,
                Strategy strategy)
{
    // Only TAG sends factors; the other ways to cut the batch sum whole gradients.
    const bool released =
        strategy == Strategy::DataParallel || strategy == Strategy::DataParallelEven || strategy == Strategy::DeepSpeed;
    Theory theory(graph, machine, ratios, released ? RuleSet::Published : rules);
    if (strategy == Strategy::Hap || strategy == Strategy::Even || strategy == Strategy::Proportional)
        return theory;
    const auto isOfTokens = [](const Node& node) { return std::ssize(node.shape) > tokenDim + 1; }; // and features
    if (strategy == Strategy::MegatronSequence && std::none_of(graph.nodes().begin(), graph.nodes().end(), isOfTokens))
        throw Error("plan",
                    fmt::format("\"{}\" cuts the tokens of a sequence, and the model has none", factsOf(strategy).name),
                    fmt::format("use the plan {}", factsOf(Strategy::Megatron).name));
    const Choice choice(graph, strategy);
    for (int index = 0; index < graph.size(); ++index) {
        const Node& node = graph.node(index);
        if (node.leaf == Leaf::Parameter)
            theory.restrictLoads(index, [&](const Step& load) { return choice.keepsLoad(load); });
        if (node.leaf != Leaf::None)
            continue;
        const auto keep = [&](const Triple& triple) { return choice.keeps(index, triple); };
        if (std::none_of(theory.triplesOf(index).begin(), theory.triplesOf(index).end(), keep))
            throw Error(
                "plan",
                fmt::format("\"{}\" has no way to compute {}, {} of {}", factsOf(strategy).name, node.name,
                            operations()[static_cast<std::size_t>(node.operation)].name,
                            shapeText(graph.node(node.operands.front()).shape)),
                "dimensions of length 1, and fewer key and value heads than members, cannot be cut: use the plan "
                "hap, which takes what can be done");
        theory.restrict(index, keep);
    }
    return theory;
}

} // namespace pipewright::sharding
