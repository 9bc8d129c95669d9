// SPDX-License-Identifier: GPL-3.0-or-later
// Which microbatches of the stages that offload leave for the host's memory, and before which block of their device
// they are asked back. Both follow from the times of the blocks alone, as transfers do: what a forward kept leaves
// right behind it, and is asked back as late as lets it arrive before the first block that reads it. Copies of one
// device and direction go one after the other. What would be asked back before it has left, or right behind the
// forward, stays.
//
// One offload of a device is on its way while the next block runs: the block behind the next offload waits for it, so
// that no more than two microbatches' worth lie on the device because of the copies.
#pragma once

#include "core/design/costs.h"
#include "core/schedule/ordergraph.h"

#include <span>
#include <vector>

namespace pipewright {

class OffloadPlan {
public:
    /// Nothing to plan where no stage offloads. `run`: the blocks' times without any offload. O(blocks).
    OffloadPlan(const PipelineShape& shape, const Costs& costs, const OrderGraph& graph, const OrderRun& run);

    bool empty() const { return m_begin.empty(); }
    /// Does what this forward keeps leave?
    bool leaves(BlockIndex forward) const { return !empty() && m_reader[forward] != noBlock; }
    /// The forwards whose values are asked back right before this block, in the order in which they are read.
    std::span<const BlockIndex> askedBackBefore(BlockIndex block) const
    {
        return std::span(m_forwards).subspan(m_begin[block], m_begin[block + 1] - m_begin[block]);
    }
    /// Bytes that a forward of this stage and microbatch leaves to the host.
    static Bytes bytesOf(const Costs& costs, int stage, int microbatch);

private:
    struct Trip {
        BlockIndex forward = noBlock, reader = noBlock, before = noBlock;
    };
    std::vector<Trip> tripsOf(const PipelineShape& shape, const OrderGraph& graph, std::size_t device) const;
    void askBackInTime(std::vector<Trip>& trips, const Costs& costs, const OrderGraph& graph,
                       const OrderRun& run) const;
    void dropThoseWithoutTime(std::vector<Trip>& trips, const Costs& costs, const OrderGraph& graph,
                              const OrderRun& run) const;

    std::vector<BlockIndex> m_reader;   ///< per block: of an offloaded forward, what reads it first; else noBlock
    std::vector<std::uint32_t> m_begin; ///< per block and one more, into m_forwards
    std::vector<BlockIndex> m_forwards;
};

} // namespace pipewright
