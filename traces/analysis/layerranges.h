// SPDX-License-Identifier: GPL-3.0-or-later
// A model from a recorded run on one device whose program put each layer into a range: record_function of PyTorch's
// profiler, NVTX in Nsight Systems. A forward lasts as long as its range, or as the kernels launched in it. Backwards
// are found by
// - flow arrows from forward operators to those of the autograd engine, or the sequence numbers of emit_nvtx(), else
// - ranges of their own, recognised by name: "layer 3 backward", "mlp(W)", "backward" around "layer 3".
// Autograd computes both gradients in one operator, so their shares are estimated unless ranges separate them. Bytes
// come from the allocator's reports (the profiler's profile_memory), otherwise from a model, otherwise they are
// unknown.
#pragma once

#include "core/presets/layerprofile.h"
#include "traces/store/activitystore.h"

#include <string>

namespace pipewright {

struct LayerRangeOptions {
    std::string layers; ///< a regular expression for their names; empty: the outermost level with several ranges
    const ModelShape* model = nullptr; ///< with as many layers; its bytes are used if the recording has none
    std::string name = "recorded";     ///< of the model
};

/// `where` names the recording. Uses the lowest rank that has such ranges. Throws Error, naming the ranges found, or
/// what else must be recorded. O(slices log slices).
LayerProfile layersOfRanges(const StoredActivities& trace, const std::string& where,
                            const LayerRangeOptions& options = {});

} // namespace pipewright
