// SPDX-License-Identifier: GPL-3.0-or-later
// Which microbatches of the offloading stages are copied to the host's memory, and before which block of their device
// the copy back is issued. Both follow from the block times alone, as transfers do: what a forward saved is offloaded
// directly after it and reloaded as late as possible, so that it arrives before the first block that reads it. A device
// copies one microbatch at a time in each direction. A microbatch stays on the device when its reload would have to
// start before its offload has ended, or directly after its forward.
//
// The activations of a sequence's pieces are also read by the forwards and backwards of its later pieces. So they are
// offloaded after the forward of the last piece, and all are back before the first backward.
//
// An offload runs while the device computes its next block. The block after the next offload waits for it, so at most
// two microbatches occupy device memory only because their copies have not ended.
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
    /// Whether what this forward saves is offloaded.
    bool offloads(BlockIndex forward) const { return !empty() && m_reader[forward] != noBlock; }
    /// The forwards whose saved values are reloaded directly before this block, in the order in which they are read.
    std::span<const BlockIndex> reloadsBefore(BlockIndex block) const
    {
        return std::span(m_forwards).subspan(m_begin[block], m_begin[block + 1] - m_begin[block]);
    }
    /// Bytes that a forward of this stage and microbatch copies to the host.
    static Bytes bytesOf(const Costs& costs, int stage, int microbatch);

private:
    struct Trip {
        BlockIndex forward = noBlock, reader = noBlock, before = noBlock;
        BlockIndex after =
            noBlock; ///< the block whose end lets the offload begin: `forward`, or that of the last piece
    };
    static bool comesBackBefore(const Trip& a, const Trip& b);
    std::vector<Trip> tripsOf(const PipelineShape& shape, const OrderGraph& graph, std::size_t device) const;
    void placeReloads(std::vector<Trip>& trips, const Costs& costs, const OrderGraph& graph, const OrderRun& run) const;
    void dropWithoutTime(std::vector<Trip>& trips, const Costs& costs, const OrderGraph& graph,
                         const OrderRun& run) const;

    std::vector<BlockIndex> m_reader;   ///< per block: of an offloaded forward, what reads it first; else noBlock
    std::vector<std::uint32_t> m_begin; ///< per block and one more, into m_forwards
    std::vector<BlockIndex> m_forwards;
};

} // namespace pipewright
