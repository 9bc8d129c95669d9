// SPDX-License-Identifier: GPL-3.0-or-later
// The A* search of synthesis.h: labels (a state, its cost, its parent), their queue, dominance, and the beam search
// before it. One object runs one search.
#pragma once

#include "core/sharding/synthesis.h"

#include <queue>
#include <unordered_map>

namespace pipewright::sharding {

class AStar {
public:
    /// `withMemory`: programs must fit the devices' memory. `ceiling`: programs that cost more are dropped.
    AStar(const SearchSpace& space, const SynthesisOptions& options, bool withMemory, double ceiling);

    void beam(int width);
    void run();

    /// Complete programs, cheapest first; at most options.programs.
    std::vector<std::vector<Move>> solutions() const;
    double bound() const { return m_bound; } ///< infinity when there is nothing to find
    bool exhausted() const { return m_exhausted; }
    std::int64_t expansions() const { return m_expansions; }

private:
    struct Label {
        double paid = 0;
        int parent = -1;
        int position = 0;
        std::uint32_t masks = 0;  ///< where they begin in m_masks
        std::uint32_t memory = 0; ///< and its bytes in m_memory
        int triple = 0;
        std::array<std::int8_t, 4> choices{};
        bool dropped = false;
    };
    struct Queued {
        double least = 0;
        int position = 0, label = 0;
        bool operator<(const Queued& other) const; ///< std::priority_queue has the largest first
    };

    int start();
    int add(int parent, const Move& move, const std::vector<Mask>& masks);
    bool fits(int label);
    bool dominates(const Label& a, const Label& b) const;
    bool enter(int label);
    void expand(int label, const std::function<void(int)>& visit);
    void finish(int label);
    std::vector<Move> movesTo(int label) const;

    const SearchSpace& m_space;
    const SynthesisOptions& m_options;
    std::size_t m_limits;
    bool m_single; ///< only the best program is asked for
    double m_ceiling, m_bound = 0;
    bool m_exhausted = false;
    std::int64_t m_expansions = 0;
    std::vector<Label> m_labels;
    std::vector<Mask> m_masks;
    std::vector<double> m_memory;
    std::vector<std::unordered_map<std::string, std::vector<int>>> m_known; ///< per position: labels by masks
    std::vector<std::vector<int>> m_expanded;                               ///< per position
    std::vector<std::pair<double, std::vector<Move>>> m_solutions;
};

} // namespace pipewright::sharding
