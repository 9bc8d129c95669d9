// SPDX-License-Identifier: GPL-3.0-or-later
// Walks the grid of states diagonal by diagonal, from a greedy order's length as the first upper bound. Of each state
// the Pareto-optimal labels are kept, and those whose lower bound is no better than the best order are dropped; with
// more labels than the effort allows the result is a bound instead of a proof.
#include "core/program/partorder.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>

namespace pipewright {

namespace {

constexpr std::size_t streamOf(const BlockPart& part)
{
    return static_cast<std::size_t>(part.stream);
}

/// When each stream is free, and when each block's next part has its inputs.
struct Progress {
    std::array<Nanoseconds, partStreamCount> free{};
    std::array<Nanoseconds, 2> ready{};

    Nanoseconds startOf(std::size_t block, const BlockPart& part) const
    {
        return std::max(free[streamOf(part)], ready[block]);
    }
    Nanoseconds issue(std::size_t block, const BlockPart& part)
    {
        const Nanoseconds start = startOf(block, part);
        free[streamOf(part)] = start + part.time;
        if (part.awaited)
            ready[block] = start + part.time;
        return start;
    }
    Nanoseconds end() const { return std::max({free[0], free[1], ready[0], ready[1]}); }
};

/// The remaining work of one block after its first parts.
struct Rest {
    std::array<Nanoseconds, partStreamCount> onStream{};
    Nanoseconds chain = 0; ///< of awaited parts, one behind the other
};

std::vector<Rest> restsOf(std::span<const BlockPart> parts)
{
    std::vector<Rest> rests(parts.size() + 1);
    for (std::size_t i = parts.size(); i-- > 0;) {
        rests[i] = rests[i + 1];
        rests[i].onStream[streamOf(parts[i])] += parts[i].time;
        if (parts[i].awaited)
            rests[i].chain += parts[i].time;
        else
            rests[i].chain = std::max(rests[i].chain, parts[i].time);
    }
    return rests;
}

class PathSearch {
public:
    PathSearch(std::span<const BlockPart> first, std::span<const BlockPart> second, std::size_t effort)
        : m_parts{first, second}, m_rests{restsOf(first), restsOf(second)},
          m_mostKept(std::min(effort / ((first.size() + 1) * (second.size() + 1)), mostKept))
    {
    }

    ShortestParts run()
    {
        takeGreedy();
        m_best.proven = m_best.length == m_best.least;
        if (m_best.proven || m_mostKept == 0)
            return m_best;
        std::vector<std::vector<Label>> diagonal(1), next; // by parts issued of the first block
        diagonal[0].push_back({{}, bound({}, 0, 0), noLabel, false});
        const std::size_t all = m_parts[0].size() + m_parts[1].size();
        for (std::size_t issued = 0; issued < all; ++issued) {
            next.assign(std::min(issued + 1, m_parts[0].size()) + 1, {});
            for (std::size_t i = 0; i < diagonal.size(); ++i) {
                prune(diagonal[i]);
                for (const Label& label : diagonal[i])
                    extend(label, i, issued - i, next);
            }
            diagonal.swap(next);
        }
        finish(diagonal.back());
        return m_best;
    }

private:
    static constexpr std::uint32_t noLabel = std::numeric_limits<std::uint32_t>::max();
    static constexpr std::size_t mostKept = 256;

    struct Label {
        Progress progress;
        Nanoseconds bound = 0; ///< no path through here is shorter
        std::uint32_t from = noLabel;
        bool second = false; ///< whose part was issued last
    };
    struct Step {
        std::uint32_t from;
        bool second;
    };

    Nanoseconds bound(const Progress& at, std::size_t i, std::size_t j) const
    {
        const Rest &one = m_rests[0][i], &other = m_rests[1][j];
        Nanoseconds least = at.end();
        for (std::size_t s = 0; s < partStreamCount; ++s)
            least = std::max(least, at.free[s] + one.onStream[s] + other.onStream[s]);
        return std::max({least, at.ready[0] + one.chain, at.ready[1] + other.chain});
    }

    /// A greedy first order: always the part that can begin earlier; with equal times, the part of the block with more
    /// work left.
    void takeGreedy()
    {
        Progress progress;
        std::array<std::size_t, 2> at{};
        while (at[0] < m_parts[0].size() || at[1] < m_parts[1].size()) {
            bool second = at[0] == m_parts[0].size();
            if (!second && at[1] < m_parts[1].size()) {
                const Nanoseconds one = progress.startOf(0, m_parts[0][at[0]]),
                                  other = progress.startOf(1, m_parts[1][at[1]]);
                second = one == other ? m_rests[0][at[0]].chain < m_rests[1][at[1]].chain : other < one;
            }
            progress.issue(second, m_parts[second][at[second]]);
            ++at[second];
            m_best.order.push_back(second);
        }
        m_best.length = progress.end();
        m_best.least = bound({}, 0, 0);
    }

    void extend(const Label& label, std::size_t i, std::size_t j, std::vector<std::vector<Label>>& next)
    {
        const std::array<std::size_t, 2> at{i, j};
        for (const std::size_t block : {std::size_t{0}, std::size_t{1}}) {
            if (at[block] == m_parts[block].size())
                continue;
            Label after = label;
            after.progress.issue(block, m_parts[block][at[block]]);
            const std::size_t to = i + (block == 0 ? 1 : 0);
            after.bound = bound(after.progress, to, j + block);
            if (after.bound >= m_best.length)
                continue;
            after.from = static_cast<std::uint32_t>(m_steps.size());
            after.second = block == 1;
            next[to].push_back(after);
        }
        m_steps.push_back({label.from, label.second});
    }

    /// Removes the labels that another label dominates, being at least as good in every time.
    void prune(std::vector<Label>& labels)
    {
        std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
            return std::tie(a.bound, a.progress.free, a.progress.ready)
                   < std::tie(b.bound, b.progress.free, b.progress.ready);
        });
        std::vector<Label> kept;
        for (Label& label : labels) {
            // Times before the earliest possible begin of any part are equivalent to it.
            Progress& p = label.progress;
            const Nanoseconds soonest = std::min(p.free[0], p.free[1]);
            for (Nanoseconds& ready : p.ready)
                ready = std::max(ready, soonest);
            const bool worse = std::any_of(kept.begin(), kept.end(), [&p](const Label& k) {
                return k.progress.free[0] <= p.free[0] && k.progress.free[1] <= p.free[1]
                       && k.progress.ready[0] <= p.ready[0] && k.progress.ready[1] <= p.ready[1];
            });
            if (worse)
                continue;
            if (kept.size() == m_mostKept) {
                m_leftOut = std::min(m_leftOut, label.bound);
                continue;
            }
            kept.push_back(label);
        }
        labels.swap(kept);
    }

    void finish(const std::vector<Label>& ends)
    {
        for (const Label& end : ends) {
            const Nanoseconds length = end.progress.end();
            if (length >= m_best.length)
                continue;
            m_best.length = length;
            m_best.order.assign(1, end.second);
            for (std::uint32_t step = end.from; m_steps[step].from != noLabel; step = m_steps[step].from)
                m_best.order.push_back(m_steps[step].second);
            std::reverse(m_best.order.begin(), m_best.order.end());
        }
        m_best.proven = m_leftOut >= m_best.length;
        m_best.least = m_best.proven ? m_best.length : std::max(m_best.least, m_leftOut);
    }

    std::array<std::span<const BlockPart>, 2> m_parts;
    std::array<std::vector<Rest>, 2> m_rests;
    std::size_t m_mostKept; ///< labels of one state
    std::vector<Step> m_steps;
    ShortestParts m_best;
    Nanoseconds m_leftOut = std::numeric_limits<Nanoseconds>::max(); ///< the least bound of a label that was left out
};

} // namespace

Nanoseconds lengthOf(std::span<const BlockPart> first, std::span<const BlockPart> second, const PartSequence& order,
                     PartStarts* starts)
{
    const std::array<std::span<const BlockPart>, 2> parts{first, second};
    std::array<std::size_t, 2> at{};
    Progress progress;
    for (const bool block : order) {
        const Nanoseconds start = progress.issue(block, parts[block][at[block]++]);
        if (starts != nullptr)
            (*starts)[block].push_back(start);
    }
    return progress.end();
}

PartSequence withPartMoved(const PartSequence& order, std::size_t block, std::size_t part, std::size_t behind)
{
    std::vector<std::size_t> behindOf; // of each part of the block: so many of the other one's
    std::size_t others = 0;
    for (const bool second : order)
        if (second == (block == 1))
            behindOf.push_back(others);
        else
            ++others;
    if (part >= behindOf.size())
        return order;
    behind = std::min(behind, others);
    for (std::size_t i = 0; i <= part; ++i)
        behindOf[i] = std::min(behindOf[i], behind);
    for (std::size_t i = part; i < behindOf.size(); ++i)
        behindOf[i] = std::max(behindOf[i], behind);
    PartSequence moved;
    for (std::size_t i = 0, passed = 0; i <= behindOf.size(); ++i) {
        for (; passed < (i < behindOf.size() ? behindOf[i] : others); ++passed)
            moved.push_back(block == 0);
        if (i < behindOf.size())
            moved.push_back(block == 1);
    }
    return moved;
}

ShortestParts shortestOrder(std::span<const BlockPart> first, std::span<const BlockPart> second, std::size_t effort)
{
    return PathSearch(first, second, effort).run();
}

} // namespace pipewright
