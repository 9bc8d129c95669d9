// SPDX-License-Identifier: GPL-3.0-or-later
// The memory breakdown for tables and bars: per stage its persistent bytes and its live activations at the device's
// peak; per device the remaining buffers, so that all parts add up to its peak. Computed from the design's costs and
// peakbreakdown.h; O(stages + instructions).
#pragma once

#include "core/predict/peakbreakdown.h"
#include "core/predict/predict.h"

#include <vector>

namespace pipewright {

struct StageBytes {
    int stage = 0, device = 0;
    int replica = 0;
    Bytes weights = 0, gradients = 0, optimizer = 0;
    Bytes activations = 0; ///< live at the device's peak
    int microbatches = 0;  ///< how many of them
    bool operator==(const StageBytes&) const = default;
};

struct DeviceMemory {
    int device = 0;
    Bytes weights = 0, gradients = 0, optimizer = 0, activations = 0; ///< sums over its stages
    Bytes gathered = 0;                                               ///< parameters of shared states, as a whole
    Bytes framework = 0;                                              ///< held besides, all the time
    Bytes buffers = 0;                                                ///< values received or to be sent
    Bytes workspace = 0;                                              ///< of the instruction at the peak
    Bytes peak = 0;                                                   ///< the sum of all
    Bytes limit = 0;                                                  ///< 0: not known
    Nanoseconds time = 0;
    bool operator==(const DeviceMemory&) const = default;
};

struct MemoryBreakdown {
    std::vector<StageBytes> stages; ///< of replica 0, then of replica 1, …
    std::vector<DeviceMemory> devices;
};
/// The largest saving of bytes on any device by sharding the optimizer state over the replicas, whether or not the
/// design does so; 0 with one replica. O(replicas x stages).
Bytes savedByShardedOptimizer(const Design& design);

MemoryBreakdown memoryBreakdown(const Design& design, const Prediction& prediction);

/// One device's part of it. The prediction has the device's instruction list. O(stages + its instructions).
DeviceMemory deviceMemory(const Design& design, const Prediction& prediction, int device);

/// The same of each group's fullest member, by predictMembers(); times are those of the members.
MemoryBreakdown memberBreakdown(const Design& design, const Prediction& members, const GroupStages& stages);

} // namespace pipewright
