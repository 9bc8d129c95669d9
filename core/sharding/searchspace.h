// SPDX-License-Identifier: GPL-3.0-or-later
// States and successors of the search. The total cost does not depend on the order of instructions, so no optimum is
// lost by computing the nodes in graph order and communicating a tensor only when its next consumer needs it: leaves
// and collectives are merged into consumers. A state is a position and, for each tensor still needed there, the set of
// relations that hold, as bits. Sets are reduced to what later nodes can use, so that states with equal futures are
// equal. Each node is computed once. A communication may follow another of the same tensor; arXiv 2401.05965 forbids
// this, but it is always correct.
#pragma once

#include "core/sharding/shardingprogram.h"

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <unordered_map>
#include <vector>

namespace pipewright::sharding {

inline constexpr double infinite = std::numeric_limits<double>::infinity(); ///< the cost of an impossible choice

using Mask = std::uint32_t;

/// One transition: the triple and acquisitions that lead to the next position.
struct Move {
    int triple = 0;
    double cost = 0;
    std::array<std::int8_t, 4> choices{}; ///< per operand: which acquisition
    std::vector<double> memory;           ///< bytes added, per limited device
};

class SearchSpace {
public:
    /// `memoryPrice`: seconds per byte of each limited device, added to the costs (empty: none). Throws Error when a
    /// tensor can take more than 32 relations.
    explicit SearchSpace(const Theory& theory, std::vector<double> memoryPrice = {});

    const Theory& theory() const { return m_theory; }
    int positions() const { return static_cast<int>(m_order.size()); }
    int nodeAt(int position) const { return m_order[position]; }
    int liveCount(int position) const { return static_cast<int>(m_live[position].size()); }
    const std::vector<int>& limitedDevices() const { return m_limited; }
    double memoryLimit(int limited) const { return m_theory.machine().memory[m_limited[limited]]; }

    /// Calls `visit(move, masks)` for every move at `position`; `masks` has liveCount(position + 1) entries and is
    /// valid only during the call.
    using Visit = std::function<void(const Move& move, const std::vector<Mask>& masks)>;
    void forEachMove(int position, const Mask* masks, const Visit& visit) const;

    /// The A* heuristic: the sum over the remaining nodes of the cheapest triple and the cheapest loads of parameters
    /// that only this node uses. Admissible, since every program pays these; consistent, since they are part of that
    /// node's move.
    double atLeast(int position) const { return m_atLeast[position]; }
    /// Lower and upper bound of the bytes added from a position on, per limited device.
    double memoryAtLeast(int position, int limited) const { return m_memoryAtLeast[position][limited]; }
    double memoryAtMost(int position, int limited) const { return m_memoryAtMost[position][limited]; }

    /// The instructions of a sequence of moves from the start.
    ShardingProgram programOf(const std::vector<Move>& moves) const;

private:
    struct Edge {
        int to = 0;
        double cost = 0;
        Step step;
    };
    struct Relations {
        std::vector<Relation> list;           ///< bit -> relation
        std::vector<std::vector<Edge>> edges; ///< from each bit
        std::vector<Edge> loads;
        Mask pieces = 0;     ///< bits of Gather
        bool tracked = true; ///< not of inputs and parameters with a single consumer
    };
    struct Acquisition {
        Mask after = 0;
        double cost = 0;
        std::vector<const Edge*> path;
        std::vector<double> memory;
    };

    int bitOf(int tensor, Relation relation) const;
    Mask closed(int tensor, Mask mask) const;
    Mask reduced(int tensor, Mask mask, Mask needs) const;
    double priced(const Step& step) const;
    std::vector<double> memoryFor(double whole, double split, int segment) const;
    const std::vector<Acquisition>& acquire(int tensor, Mask mask, int bit) const;
    void searchPaths(int tensor, const Edge& edge, int goal, const Acquisition& sofar,
                     std::vector<Acquisition>& found) const;
    const std::vector<Acquisition>& acquisitionsFor(int position, std::size_t triple, std::size_t operand,
                                                    Mask mask) const;
    Relations relationsOf(int tensor) const;
    void priceTriples();
    void findLive();
    void findBounds();

    const Theory& m_theory;
    std::vector<double> m_price;
    std::vector<int> m_limited;
    std::vector<int> m_order;                   ///< position -> node
    std::vector<Relations> m_relations;         ///< per tensor
    std::vector<std::vector<int>> m_live;       ///< per position
    std::vector<std::vector<int>> m_slots;      ///< per position: live tensors, then those that this node brings
    std::vector<std::vector<int>> m_slotOfNext; ///< per position: slot of each live tensor of the next
    std::vector<std::vector<Mask>>
        m_needs; ///< per position: of each tensor live after it, relations that later nodes use
    struct PricedTriple {
        double cost = 0;
        std::vector<int> needBits;
        Mask result = 0;
        std::vector<double> memory;
    };
    std::vector<std::vector<PricedTriple>> m_triples; ///< per position
    std::vector<double> m_atLeast;
    std::vector<std::vector<double>> m_memoryAtLeast, m_memoryAtMost;
    mutable std::unordered_map<std::uint64_t, std::vector<Acquisition>> m_acquisitions;
    std::vector<std::vector<Acquisition>> m_wholeLoads; ///< per tensor: loading it whole without a reduction
};

} // namespace pipewright::sharding
