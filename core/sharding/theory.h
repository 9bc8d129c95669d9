// SPDX-License-Identifier: GPL-3.0-or-later
// The rules applied to one graph: the triples by which each node can be computed, and the communications that turn one
// relation of a tensor into another, with their charges (arXiv 2401.05965).
#pragma once

#include "core/model/tensorgraph.h"
#include "core/sharding/charge.h"

#include <functional>
#include <map>
#include <vector>

namespace pipewright::sharding {

enum class RuleSet { Published, All };

/// A rule with its letters replaced by a node's dimensions: one strategy to compute the node.
struct Triple {
    int rule = -1;
    std::vector<Need> kinds;     ///< per operand
    std::vector<Relation> needs; ///< per operand; Once and Factors need an Identity
    Relation result;
    std::vector<Charge> charges; ///< of computing, and of gathering factors
};

/// How a relation of a tensor is obtained without computing the tensor.
enum class Action : std::uint8_t {
    Load,          ///< a parameter, or an input, as it is stored
    AllGather,     ///< Gather -> Identity; backward a reduce-scatter
    ReduceScatter, ///< Reduce -> Gather; backward an all-gather
    AllReduce,     ///< Reduce -> Identity, and the same backward
    AllToAll,      ///< Gather(i) -> Gather(j), and the same backward; also between two segments' cuts
    Slice,         ///< Identity -> Gather; free
};

struct Step {
    Action action = Action::Load;
    Relation from; ///< not of Load
    Relation to;
    std::vector<Charge> charges;
    double heldWhole = 0,
           heldSplit =
               0; ///< bytes kept until the backward pass: on every device; divided by the ratios of `to.segment`
};

class Theory {
public:
    /// Throws Error with the graph's check(). The ratios decide between padded and grouped collectives and
    /// which segments are cut alike; charges stay functions of them.
    Theory(const TensorGraph& graph, const Machine& machine, const Ratios& ratios, RuleSet rules = RuleSet::All);

    const TensorGraph& graph() const { return m_graph; }
    const Machine& machine() const { return m_machine; }
    const Ratios& ratios() const { return m_ratios; }
    const std::vector<std::vector<int>>& consumers() const { return m_consumers; }

    /// The first segment with the same ratios, and therefore the same cuts.
    int cutOf(int segment) const { return m_cutOfSegment[segment]; }
    /// The largest number of equal parts of a dimension; devices get whole parts. 1: it cannot be cut.
    std::int64_t parts(int tensor, int dim) const { return m_parts[tensor][dim]; }

    /// Removes a node's triples that `keep` rejects, unless it rejects all.
    void restrict(int node, const std::function<bool(const Triple&)>& keep);
    /// Removes a leaf's loads that `keep` rejects, unless it rejects all.
    void restrictLoads(int tensor, const std::function<bool(const Step&)>& keep);
    const std::vector<Triple>& triplesOf(int node) const { return m_triples[node]; }
    /// Every step that leads to `to`, from each relation in `from`; for leaves also their loading when `unloaded`.
    std::vector<Step> stepsFrom(int tensor, Relation from) const;
    std::vector<Step> loadsOf(int tensor) const;
    /// A parameter whose gradient needs no reduction, because of how its only consumer treats it (Once, Factors).
    Step wholeLoadOf(int tensor) const;
    /// All relations that a tensor can take: Identity, Reduce, and pieces along every dimension that can be cut.
    std::vector<Relation> relationsOf(int tensor) const;
    /// Bytes that a relation of a computed tensor keeps until the backward pass.
    std::pair<double, double> heldBytes(int tensor, Relation relation) const;

private:
    void findParts();
    std::vector<Triple> findTriples(int node, RuleSet rules) const;
    std::vector<Charge> chargesOf(int node, const SharingRule& rule, bool split) const;
    Charge exchange(Pass pass, Collective padded, Collective grouped, int tensor, Relation piece) const;

    const TensorGraph& m_graph;
    Machine m_machine;
    Ratios m_ratios;
    std::vector<std::vector<int>> m_consumers;
    std::vector<int> m_cutOfSegment;
    std::vector<std::vector<std::int64_t>> m_parts;
    std::vector<std::vector<Triple>> m_triples;
    std::map<int, std::vector<Step>> m_restrictedLoads; ///< by tensor
};

} // namespace pipewright::sharding
