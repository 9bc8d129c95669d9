// SPDX-License-Identifier: GPL-3.0-or-later
// Two passes over each device's offloaded microbatches. Backwards in the order of their readers: the latest time at
// which a reload may begin so that it and all later ones arrive in time, and the last block that begins no later. Then
// forwards in the order of the forwards: an offload ends after those before it have ended; a microbatch whose reload
// would begin earlier than that is not offloaded. O(blocks + offloads log blocks).
#include "core/program/offloadplan.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace pipewright {

Bytes OffloadPlan::bytesOf(const Costs& costs, int stage, int microbatch)
{
    const StageCosts& of = costs.stages[static_cast<std::size_t>(stage)];
    const auto scaled = [&](Bytes bytes) {
        return costs.microbatches.empty() ? bytes : costs.scaled(bytes, microbatch);
    };
    return scaled(of.savedUntilInputGrad) + scaled(of.savedUntilWeightGrad);
}

OffloadPlan::OffloadPlan(const PipelineShape& shape, const Costs& costs, const OrderGraph& graph, const OrderRun& run)
{
    if (std::find(shape.offload.begin(), shape.offload.end(), true) == shape.offload.end() || !costs.hostLink)
        return;
    m_reader.assign(graph.blocks.size(), noBlock);
    std::vector<Trip> all;
    for (std::size_t device = 0; device + 1 < graph.firstOfDevice.size(); ++device) {
        std::vector<Trip> trips = tripsOf(shape, graph, device);
        std::erase_if(trips, [&](const Trip& trip) {
            const Block& block = graph.blocks[trip.forward];
            return bytesOf(costs, block.stage, block.microbatch) == 0;
        });
        placeReloads(trips, costs, graph, run);
        dropWithoutTime(trips, costs, graph, run);
        std::sort(trips.begin(), trips.end(), comesBackBefore);
        all.insert(all.end(), trips.begin(), trips.end());
    }
    m_begin.assign(graph.blocks.size() + 1, 0);
    for (const Trip& trip : all) {
        m_reader[trip.forward] = trip.reader;
        ++m_begin[trip.before + 1];
    }
    for (std::size_t b = 1; b < m_begin.size(); ++b)
        m_begin[b] += m_begin[b - 1];
    m_forwards.resize(all.size());
    std::vector<std::uint32_t> next(m_begin.begin(), m_begin.end() - 1);
    for (const Trip& trip : all)
        m_forwards[next[trip.before]++] = trip.forward;
}

/// By the order in which they are read; pieces that the same block reads, by the order of their forwards.
bool OffloadPlan::comesBackBefore(const Trip& a, const Trip& b)
{
    return std::pair(a.reader, a.forward) < std::pair(b.reader, b.forward);
}

/// Forwards whose backward or recompute comes later on the device. Ascending.
std::vector<OffloadPlan::Trip> OffloadPlan::tripsOf(const PipelineShape& shape, const OrderGraph& graph,
                                                    std::size_t device) const
{
    std::vector<Trip> trips;
    for (BlockIndex b = graph.firstOfDevice[device]; b < graph.firstOfDevice[device + 1]; ++b) {
        const Block& block = graph.blocks[b];
        if (block.op != Op::F || !shape.offloads(block.stage))
            continue;
        const int last = block.microbatch / shape.sequencePieces * shape.sequencePieces + shape.sequencePieces - 1;
        const BlockIndex after = graph.indexOf(Op::F, block.stage, last);
        BlockIndex reader = noBlock; // noBlock for all pieces when the reader of one is missing
        for (int piece = block.microbatch; piece <= last; ++piece) {
            const BlockIndex again = graph.indexOf(Op::R, block.stage, piece);
            const BlockIndex first = again != noBlock ? again : graph.backwardOf(block.stage, piece);
            reader = piece == block.microbatch || first == noBlock ? first : std::min(reader, first);
            if (reader == noBlock)
                break;
        }
        if (after != noBlock && reader != noBlock && reader > after)
            trips.push_back({b, reader, noBlock, after});
    }
    return trips;
}

void OffloadPlan::placeReloads(std::vector<Trip>& trips, const Costs& costs, const OrderGraph& graph,
                               const OrderRun& run) const
{
    std::sort(trips.begin(), trips.end(), [](const Trip& a, const Trip& b) { return comesBackBefore(b, a); });
    Nanoseconds latest = std::numeric_limits<Nanoseconds>::max();
    for (Trip& trip : trips) {
        const Block& block = graph.blocks[trip.forward];
        const Nanoseconds copy = costs.hostLink->transferTime(bytesOf(costs, block.stage, block.microbatch));
        const Nanoseconds begin = std::min(latest, run.start[trip.reader]) - copy;
        // Blocks of a device begin in their order.
        const auto first = run.start.begin() + trip.after + 1, last = run.start.begin() + trip.reader + 1;
        const auto behind = std::upper_bound(first, last, begin);
        if (behind == first)
            continue; // no block begins early enough: it stays
        auto before = static_cast<BlockIndex>(behind - run.start.begin() - 1);
        if (before > trip.after + 1 && graph.unitSize(before - 1) > 1)
            --before; // nothing comes between the two of a pair
        if (before <= trip.after + 1)
            continue;
        trip.before = before;
        latest = begin;
    }
    std::erase_if(trips, [](const Trip& trip) { return trip.before == noBlock; });
}

void OffloadPlan::dropWithoutTime(std::vector<Trip>& trips, const Costs& costs, const OrderGraph& graph,
                                  const OrderRun& run) const
{
    std::sort(trips.begin(), trips.end(), [](const Trip& a, const Trip& b) { return a.forward < b.forward; });
    Nanoseconds wireFree = 0;
    std::erase_if(trips, [&](const Trip& trip) {
        const Block& block = graph.blocks[trip.forward];
        const Nanoseconds copy = costs.hostLink->transferTime(bytesOf(costs, block.stage, block.microbatch));
        const Nanoseconds gone = std::max(wireFree, run.end[trip.after]) + copy;
        if (gone > run.start[trip.before])
            return true;
        wireFree = gone;
        return false;
    });
}

} // namespace pipewright
