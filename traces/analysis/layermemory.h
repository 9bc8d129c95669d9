// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes of layers from the allocator's own reports in a recorded run (layerranges.h): what a forward leaves allocated
// is what it saved, its output among it; what is left after its backward too are gradients, as large as parameters
// where every pass makes them anew.
#pragma once

#include "core/presets/layerprofile.h"
#include "traces/analysis/layerslices.h"

namespace pipewright {

/// A part of the host's time in which one layer's pass was under way.
struct LayerStretch {
    Nanoseconds start = 0, end = 0;
    std::uint32_t lane = 0;
    std::size_t run = 0, layer = 0;
    LayerPass pass = LayerPass::Forward;
    double weightShare = 0;
};

/// What was allocated by PyTorch on a device (-1: on the host); null: not recorded.
const TraceCounter* allocatedBytes(const StoredActivities& trace, int rank, int device);

/// Fills saved, parameters, output and peak of every layer, and says which of them are estimates. Medians over the
/// runs; of parameters the largest, as later passes of a step add to the gradients that there are. `stretches` by
/// start.
void fillFromMemory(const TraceCounter& allocated, const std::vector<LayerSlices::Slice>& operators,
                    const std::vector<LayerStretch>& stretches, std::size_t runs, std::vector<KnownLayer>& table,
                    LayerProfile& profile);

} // namespace pipewright
