// SPDX-License-Identifier: GPL-3.0-or-later
// Looped breadth-first (arXiv 2211.05953): every chunk runs all its microbatches before the next chunk
// starts; backwards sweep the chunks in reverse, microbatches descending as PyTorch runs them. Made for
// sharded parameters, which are then gathered once per sweep.
#include "core/families/orders.h"

namespace pipewright {

namespace {

Schedule makeLoopedBreadthFirst(const FamilyParameters& p)
{
    const int chunks = p.chunks.value_or(2);
    Schedule schedule;
    schedule.deviceOfStage = loopedPlacement(p.devices, chunks);
    for (int device = 0; device < p.devices; ++device) {
        std::vector<Block>& lane = schedule.order.emplace_back();
        lane.reserve(static_cast<std::size_t>(chunks) * static_cast<std::size_t>(p.microbatches) * 2);
        for (int chunk = 0; chunk < chunks; ++chunk)
            for (int m = 0; m < p.microbatches; ++m)
                lane.push_back({Op::F, chunk * p.devices + device, m});
        for (int chunk = chunks; chunk-- > 0;)
            for (int m = p.microbatches; m-- > 0;)
                lane.push_back({Op::B, chunk * p.devices + device, m});
    }
    return schedule;
}

} // namespace

Family loopedBreadthFirst()
{
    return {.name = "looped-bfs",
            .title = "Looped BFS",
            .description = "Each chunk runs all microbatches before the next; parameters are gathered once per sweep.",
            .defaultChunks = 2,
            .chunksSelectable = true,
            .backward = BackwardStyle::Full,
            .make = makeLoopedBreadthFirst};
}

} // namespace pipewright
