// SPDX-License-Identifier: GPL-3.0-or-later
// The blocks of a schedule as a dependency graph: one flat array of blocks, device after device, and for each block
// those whose values it reads. Validation and compilation both start here, so they cannot disagree about what a
// block depends on. Building and traversing it are O(blocks).
#pragma once

#include "core/base/diagnostic.h"
#include "core/schedule/schedule.h"
#include "core/schedule/validate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace pipewright {

using BlockIndex = std::uint32_t; ///< into OrderGraph::blocks
inline constexpr BlockIndex noBlock = 0xffff'ffff;

class OrderGraph {
public:
    /// Checks the schedule block by block and, when nothing is wrong, builds the graph; the diagnostics
    /// come back in `diagnostics`. With `allowMissing`, absent blocks are no error and no block waits for them.
    OrderGraph(const Schedule& schedule, std::span<const SkipConnection> skips, bool allowMissing,
               Diagnostics& diagnostics);

    std::vector<Block> blocks;
    std::vector<BlockIndex> firstOfDevice; ///< devices + 1 entries
    std::vector<std::int32_t> deviceOfBlock;
    /// The block whose value travels to this one along the chain of stages: F of the stage before, or the
    /// backward of the stage after. noBlock at the ends, and for W (its inputs are on its own device).
    std::vector<BlockIndex> chainInput;
    struct SkipInput {
        enum class Kind : std::uint8_t {
            Skip,            ///< of a skip connection
            SharedGradient,  ///< the per-microbatch gradient of a shared parameter (without loop commuting)
            PartialGradient, ///< a gradient sum so far
            UpdatedWeights,  ///< weights that another device updated
        };
        BlockIndex block = noBlock;
        BlockIndex input = noBlock;
        std::uint32_t index = 0; ///< of the skip connection, or of the shared parameter
        Kind kind = Kind::Skip;

        /// Weights or their gradients (see program/weightversions.h), as opposed to activations and their gradients.
        bool isOfWeights() const
        {
            switch (kind) {
            case Kind::PartialGradient:
            case Kind::UpdatedWeights: return true;
            case Kind::Skip:
            case Kind::SharedGradient: return false;
            }
            return false;
        }
    };
    std::vector<SkipInput> skipInputs; ///< sorted by block
    /// Per block: it overlaps with the next one of its device. Empty when no blocks overlap.
    std::vector<std::uint8_t> overlapsNext;

    /// How many blocks start together with this one, itself included: 1, or 2 for an overlapped pair.
    BlockIndex unitSize(BlockIndex block) const { return overlapsNext.empty() ? 1 : 1 + overlapsNext[block]; }

    /// Has the order U blocks?
    bool hasUpdates() const { return m_hasUpdates; }

    /// Position of a block in the flat array; noBlock when it is not placed. Only for passes.
    BlockIndex indexOf(Op op, int stage, int microbatch) const
    {
        if (op == Op::R && m_placed[pipewright::indexOf(Op::R)] == 0)
            return noBlock; // the table need not have a row for it
        return m_table[(pipewright::indexOf(op) * static_cast<std::size_t>(m_stages) + static_cast<std::size_t>(stage))
                           * static_cast<std::size_t>(m_microbatches)
                       + static_cast<std::size_t>(microbatch)];
    }
    /// B or I of this stage and microbatch, whichever is placed.
    BlockIndex backwardOf(int stage, int microbatch) const
    {
        const BlockIndex full = fullBackward(stage, microbatch);
        return full != noBlock ? full : indexOf(Op::I, stage, microbatch);
    }

private:
    /// Reads the table only where the schedule has full backwards at all.
    BlockIndex fullBackward(int stage, int microbatch) const
    {
        return m_placed[pipewright::indexOf(Op::B)] == 0 ? noBlock : indexOf(Op::B, stage, microbatch);
    }
    bool checkShape(const Schedule& schedule, std::span<const SkipConnection> skips, Diagnostics& diagnostics) const;
    void checkTurns(const Schedule& schedule, Diagnostics& diagnostics) const;
    void fillTable(const Schedule& schedule, Diagnostics& diagnostics);
    void checkComplete(const Schedule& schedule, Diagnostics& diagnostics) const;
    void checkLocalOrder(const Schedule& schedule, Diagnostics& diagnostics) const;
    void checkPieceOrder(const Schedule& schedule, Diagnostics& diagnostics) const;
    void checkUpdates(const Schedule& schedule, Diagnostics& diagnostics) const;
    void linkOverlaps(const Schedule& schedule, Diagnostics& diagnostics);
    void linkInputs(std::span<const SkipConnection> skips);

    int m_stages = 0;
    int m_microbatches = 0;
    bool m_hasUpdates = false;
    std::array<std::size_t, passCount> m_placed{}; ///< per pass: how many are in the table
    std::vector<BlockIndex> m_table;               ///< [pass][stage][microbatch]
};

/// A simulation of all devices, each running its list in order, each block as soon as its inputs have arrived.
struct OrderRun {
    std::vector<BlockIndex> sequence;    ///< a topological order; shorter than blocks when there is a deadlock
    std::vector<Nanoseconds> start, end; ///< per block; one that never ran has the end -1
    Diagnostics stuck;                   ///< the cycle of a deadlock, block by block

    bool ran(BlockIndex block) const { return end[block] >= 0; }
};

/// `duration(block)` and `delay(input, block)`, both by index, give nanoseconds. An overlapped pair starts when both
/// blocks can, and takes `duration` of its first. `earliestStart` (pins) may be empty. O(blocks).
template<typename Duration, typename Delay>
OrderRun runOrder(const OrderGraph& graph, const std::vector<Nanoseconds>& earliestStart, Duration duration,
                  Delay delay);

/// The same with all times 0: finds only the order, or the deadlock.
OrderRun runOrder(const OrderGraph& graph);

/// Names the cycle in which devices stopped at `nextOfDevice` (flat indices) wait for each other.
Diagnostics describeCycle(const OrderGraph& graph, const std::vector<BlockIndex>& nextOfDevice, const OrderRun& run);

template<typename Duration, typename Delay>
OrderRun runOrder(const OrderGraph& graph, const std::vector<Nanoseconds>& earliestStart, Duration duration,
                  Delay delay)
{
    const std::size_t count = graph.blocks.size();
    const std::size_t devices = graph.firstOfDevice.size() - 1;
    OrderRun run;
    run.sequence.reserve(count);
    run.start.resize(count);
    run.end.resize(count, -1);
    std::vector<BlockIndex> next(graph.firstOfDevice.begin(), graph.firstOfDevice.end() - 1);
    std::vector<Nanoseconds> free(devices, 0);
    // A device waits for one block at a time; devices that wait for the same block form a linked list.
    std::vector<std::int32_t> waiter(count, -1);
    std::vector<std::int32_t> nextWaiter(devices, -1);
    std::vector<std::int32_t> runnable;
    for (std::size_t d = devices; d-- > 0;)
        runnable.push_back(static_cast<std::int32_t>(d));

    // The first input of block b that has not run, if any; else `start` is raised until all have arrived.
    const auto waitForInputs = [&](BlockIndex b, Nanoseconds& start) {
        const BlockIndex chain = graph.chainInput[b];
        if (chain != noBlock) {
            const Nanoseconds ready = run.end[chain];
            if (ready < 0)
                return chain;
            start = std::max(start, ready + delay(chain, b));
        }
        if (!graph.skipInputs.empty()) {
            auto skip =
                std::lower_bound(graph.skipInputs.begin(), graph.skipInputs.end(), b,
                                 [](const OrderGraph::SkipInput& s, BlockIndex block) { return s.block < block; });
            for (; skip != graph.skipInputs.end() && skip->block == b; ++skip) {
                if (!run.ran(skip->input))
                    return skip->input;
                start = std::max(start, run.end[skip->input] + delay(skip->input, b));
            }
        }
        if (!earliestStart.empty())
            start = std::max(start, earliestStart[b]);
        return noBlock;
    };

    while (!runnable.empty()) {
        const auto d = static_cast<std::size_t>(runnable.back());
        runnable.pop_back();
        for (BlockIndex i = next[d]; i < graph.firstOfDevice[d + 1];) {
            Nanoseconds start = free[d];
            BlockIndex missing = noBlock;
            const BlockIndex unitEnd = i + graph.unitSize(i);
            for (BlockIndex b = i; b < unitEnd && missing == noBlock; ++b)
                missing = waitForInputs(b, start);
            if (missing != noBlock) {
                nextWaiter[d] = waiter[missing];
                waiter[missing] = static_cast<std::int32_t>(d);
                break;
            }
            free[d] = start + duration(i);
            for (BlockIndex b = i; b < unitEnd; ++b) {
                run.start[b] = start;
                run.end[b] = free[d];
                run.sequence.push_back(b);
                for (std::int32_t w = waiter[b]; w >= 0; w = nextWaiter[w])
                    runnable.push_back(w);
            }
            next[d] = i = unitEnd;
        }
    }
    if (run.sequence.size() < count)
        run.stuck = describeCycle(graph, next, run);
    return run;
}

} // namespace pipewright
