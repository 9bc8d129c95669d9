// SPDX-License-Identifier: GPL-3.0-or-later
// A model from a recorded run on one device whose program put each layer into a range: record_function of PyTorch's
// profiler, NVTX in Nsight Systems. A forward lasts as long as its range, or as the kernels launched in it. Backwards
// are found by
// - arrows from forward operators to those of the autograd engine, or the sequence numbers of emit_nvtx(), else
// - ranges of their own, whose names say it: "layer 3 backward", "mlp(W)", "backward" around "layer 3".
// Autograd computes both gradients in one operator, so their shares are estimated unless ranges say them. Bytes come
// from what the allocator reported (the profiler's profile_memory); without that from a model, or they are not known.
#pragma once

#include "core/presets/layerprofile.h"
#include "traces/store/activitystore.h"

#include <string>

namespace pipewright {

struct LayerRangeOptions {
    std::string layers;                ///< a regular expression for their names; empty: the outermost that are several
    const ModelShape* model = nullptr; ///< whose bytes are taken where the recording has none; of as many layers
    std::string name = "recorded";     ///< of the model
};

/// `where` names the recording. Of the lowest rank that has such ranges. Throws Error: which ranges there are, or what
/// else was to be recorded. O(slices log slices).
LayerProfile layersOfRanges(const StoredActivities& trace, const std::string& where,
                            const LayerRangeOptions& options = {});

} // namespace pipewright
