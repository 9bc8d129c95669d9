// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes of layers from the allocator's reports in a recorded run (layerranges.h). What a forward leaves allocated is
// what it saved, its output included. What is still left after its backward are gradients; they are as large as the
// parameters if every pass allocates them anew.
#pragma once

#include "core/presets/layerprofile.h"
#include "traces/analysis/layerslices.h"

namespace pipewright {

/// A stretch of the host's time in which one pass of one layer ran.
struct LayerStretch {
    Nanoseconds start = 0, end = 0;
    std::uint32_t lane = 0;
    std::size_t run = 0, layer = 0;
    LayerPass pass = LayerPass::Forward;
    double weightShare = 0;
};

/// PyTorch's counter of allocated bytes on a device (-1: on the host); null: not recorded.
const TraceCounter* allocatedBytes(const StoredActivities& trace, int rank, int device);

/// Fills saved, parameters, output and peak of every layer, and marks which of them are estimates. Takes medians over
/// the runs, but for parameters the largest value, since later passes of a step add to existing gradients. `stretches`
/// must be sorted by start.
void fillFromMemory(const TraceCounter& allocated, const std::vector<LayerSlices::Slice>& operators,
                    const std::vector<LayerStretch>& stretches, std::size_t runs, std::vector<KnownLayer>& table,
                    LayerProfile& profile);

} // namespace pipewright
