// SPDX-License-Identifier: GPL-3.0-or-later
// Where the memory goes, for tables and bars: per stage what it holds all the time and what its live activations
// take at the fullest moment of its device; per device the rest that adds up to its peak. From the design's costs
// and peakbreakdown.h; O(stages + instructions).
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
/// What a device keeps less of, at most, where the replicas share the optimizer's state out, whether they do or not; 0
/// where there is one replica. O(replicas x stages).
Bytes savedByShardedOptimizer(const Design& design);

MemoryBreakdown memoryBreakdown(const Design& design, const Prediction& prediction);

/// The same of each group's fullest member, by predictMembers(); times are those of the members.
MemoryBreakdown memberBreakdown(const Design& design, const Prediction& members, const GroupStages& stages);

} // namespace pipewright
