// SPDX-License-Identifier: GPL-3.0-or-later
// A* with a binary heap of labels ordered by cost plus heuristic. Labels with the same masks share a list for dominance
// tests; a beam search first gives an upper bound. O(log labels + moves + dominance tests) per expansion.
#include "core/sharding/astar.h"

#include <algorithm>

namespace pipewright::sharding {

namespace {

constexpr double rounding = 1e-12; // sums in another order may differ by so much
constexpr std::size_t mostCompared = 128;
constexpr std::size_t mostLabels = 24'000'000;

} // namespace

bool AStar::Queued::operator<(const Queued& other) const
{
    if (least != other.least)
        return least > other.least;
    if (position != other.position)
        return position < other.position;
    return label > other.label;
}

AStar::AStar(const SearchSpace& space, const SynthesisOptions& options, bool withMemory, double ceiling)
    : m_space(space), m_options(options), m_limits(withMemory ? space.limitedDevices().size() : 0),
      m_single(options.programs <= 1), m_ceiling(ceiling), m_known(static_cast<std::size_t>(space.positions()) + 1),
      m_expanded(static_cast<std::size_t>(space.positions()) + 1)
{
}

int AStar::start()
{
    m_labels.emplace_back();
    m_memory.resize(m_limits, 0.0);
    return fits(0) ? 0 : -1;
}

int AStar::add(int parent, const Move& move, const std::vector<Mask>& masks)
{
    Label label;
    const Label& from = m_labels[parent];
    label.paid = from.paid + move.cost;
    label.parent = parent;
    label.position = from.position + 1;
    label.masks = static_cast<std::uint32_t>(m_masks.size());
    label.memory = static_cast<std::uint32_t>(m_memory.size());
    label.triple = move.triple;
    label.choices = move.choices;
    m_masks.insert(m_masks.end(), masks.begin(), masks.end());
    for (std::size_t i = 0; i < m_limits; ++i)
        m_memory.push_back(m_memory[from.memory + i] + move.memory[i]);
    m_labels.push_back(label);
    return static_cast<int>(m_labels.size()) - 1;
}

/// False when the label cannot stay within memory. Where the rest fits in any case, its memory is ignored from then on.
bool AStar::fits(int index)
{
    const Label& label = m_labels[index];
    for (std::size_t i = 0; i < m_limits; ++i) {
        double& kept = m_memory[label.memory + i];
        const double limit = m_space.memoryLimit(static_cast<int>(i)) * (1 + 1e-9);
        if (kept + m_space.memoryAtLeast(label.position, static_cast<int>(i)) > limit)
            return false;
        if (kept + m_space.memoryAtMost(label.position, static_cast<int>(i)) <= limit)
            kept = -infinite;
    }
    return true;
}

/// For labels of the same position.
bool AStar::dominates(const Label& a, const Label& b) const
{
    if (a.paid > b.paid)
        return false;
    for (int i = 0; i < m_space.liveCount(a.position); ++i)
        if (const Mask wanted = m_masks[b.masks + static_cast<std::uint32_t>(i)];
            (m_masks[a.masks + static_cast<std::uint32_t>(i)] & wanted) != wanted)
            return false;
    for (std::size_t i = 0; i < m_limits; ++i)
        if (m_memory[a.memory + i] > m_memory[b.memory + i])
            return false;
    return true;
}

/// Adds the label unless one with the same masks dominates it; true when added.
bool AStar::enter(int index)
{
    Label& label = m_labels[index];
    const auto live = static_cast<std::size_t>(m_space.liveCount(label.position));
    const std::string key(reinterpret_cast<const char*>(m_masks.data() + label.masks), live * sizeof(Mask));
    std::vector<int>& same = m_known[label.position][key];
    const auto cheaper =
        std::count_if(same.begin(), same.end(), [&](int other) { return dominates(m_labels[other], label); });
    if (cheaper >= std::max(1, m_options.programs))
        return false;
    if (m_single)
        std::erase_if(same, [&](int other) {
            Label& old = m_labels[other];
            old.dropped = old.dropped || dominates(label, old);
            return old.dropped;
        });
    same.push_back(index);
    return true;
}

void AStar::expand(int index, const std::function<void(int)>& visit)
{
    const Label label = m_labels[index];
    const std::vector<Mask> masks(m_masks.begin() + label.masks,
                                  m_masks.begin() + label.masks + m_space.liveCount(label.position));
    m_space.forEachMove(label.position, masks.data(), [&](const Move& move, const std::vector<Mask>& next) {
        if (label.paid + move.cost + m_space.atLeast(label.position + 1) > m_ceiling * (1 + rounding))
            return;
        const int added = add(index, move, next);
        if (fits(added)) {
            visit(added);
        } else { // removes the rejected label
            m_masks.resize(m_labels.back().masks);
            m_memory.resize(m_labels.back().memory);
            m_labels.pop_back();
        }
    });
}

std::vector<Move> AStar::movesTo(int index) const
{
    std::vector<Move> moves;
    for (int at = index; m_labels[at].parent >= 0; at = m_labels[at].parent) {
        const Label& label = m_labels[at];
        Move move;
        move.triple = label.triple;
        move.choices = label.choices;
        moves.push_back(move);
    }
    std::reverse(moves.begin(), moves.end());
    return moves;
}

void AStar::finish(int index)
{
    m_solutions.emplace_back(m_labels[index].paid, movesTo(index));
    std::stable_sort(m_solutions.begin(), m_solutions.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (m_single)
        m_ceiling = std::min(m_ceiling, m_solutions.front().first);
}

std::vector<std::vector<Move>> AStar::solutions() const
{
    std::vector<std::vector<Move>> found;
    for (const auto& [paid, moves] : m_solutions)
        if (static_cast<int>(found.size()) < std::max(1, m_options.programs))
            found.push_back(moves);
    return found;
}

void AStar::beam(int width)
{
    if (start() < 0)
        return;
    std::vector<int> level{0};
    for (int position = 0; position < m_space.positions() && !level.empty(); ++position) {
        std::vector<int> next;
        for (const int label : level)
            expand(label, [&](int added) {
                if (enter(added))
                    next.push_back(added);
            });
        std::erase_if(next, [this](int label) { return m_labels[label].dropped; });
        std::stable_sort(next.begin(), next.end(),
                         [this](int a, int b) { return m_labels[a].paid < m_labels[b].paid; });
        if (next.size() > static_cast<std::size_t>(width))
            next.resize(static_cast<std::size_t>(width));
        level = std::move(next);
    }
    if (!level.empty())
        finish(level.front());
    m_labels.clear();
    m_masks.clear();
    m_memory.clear();
    for (auto& known : m_known)
        known.clear();
}

void AStar::run()
{
    m_bound = infinite;
    m_exhausted = true;
    if (start() < 0)
        return;
    // The beam's solution is an upper bound; the search finds it again itself.
    const std::size_t before = m_solutions.size();
    std::size_t arrived = 0;
    std::priority_queue<Queued> queue;
    queue.push({m_space.atLeast(0), 0, 0});
    while (!queue.empty()) {
        const Queued top = queue.top();
        if (top.least > m_ceiling * (1 + rounding))
            break;
        const bool late = m_expansions % 64 == 0 && m_options.deadline.passed();
        if (m_expansions >= m_options.maxExpansions || m_labels.size() > mostLabels || late) {
            m_bound = top.least;
            m_exhausted = false;
            return;
        }
        queue.pop();
        const Label label = m_labels[top.label];
        if (label.dropped)
            continue;
        if (label.position == m_space.positions()) {
            m_bound = std::min(m_bound, label.paid);
            if (arrived == 0)
                m_solutions.erase(m_solutions.begin(), m_solutions.begin() + static_cast<std::ptrdiff_t>(before));
            finish(top.label);
            if (++arrived >= static_cast<std::size_t>(std::max(1, m_options.programs)))
                return;
            continue;
        }
        std::vector<int>& expanded = m_expanded[label.position];
        const auto better = [&](int other) { return dominates(m_labels[other], label); };
        if (m_single && std::any_of(expanded.begin(), expanded.end(), better))
            continue;
        if (expanded.size() < mostCompared)
            expanded.push_back(top.label);
        ++m_expansions;
        expand(top.label, [&](int added) {
            if (enter(added))
                queue.push({m_labels[added].paid + m_space.atLeast(m_labels[added].position), m_labels[added].position,
                            added});
        });
    }
    if (m_bound == infinite && !m_solutions.empty()) // nothing is cheaper than the beam's solution
        m_bound = m_solutions.front().first;
}

} // namespace pipewright::sharding
