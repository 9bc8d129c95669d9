// SPDX-License-Identifier: GPL-3.0-or-later
// Chooses the stages that offload by prediction: first those that cost no time, then, while a device exceeds its
// memory, those that cost the least time.
#pragma once

#include "core/base/offload.h"
#include "core/design/design.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipewright {

struct OffloadedStages {
    Design design;                         ///< the design with these stages offloading
    std::vector<bool> forFree;             ///< per stage: offloads without a longer step
    std::vector<bool> forRoom;             ///< per stage: offloads because a device lacks memory
    Nanoseconds before = 0, after = 0;     ///< makespan
    std::vector<Bytes> peaks, peaksBefore; ///< per device
    bool fits = true;                      ///< no device needs more than it has, as far as that is known
    std::string text() const;              ///< "stages 0-1 for free, stage 3 for room: …"
};

/// `limit`: memory of each device instead of its own. Throws Error as predict() and withOffload() do. O(stages² ·
/// blocks). `stop`: polled regularly; ends with the result so far.
OffloadedStages chooseOffloadedStages(const Design& design, std::optional<Bytes> limit = std::nullopt,
                                      const std::function<bool()>& stop = {});

/// Time and memory of the step for one set of offloading stages.
struct OffloadPoint {
    std::vector<bool> offload; ///< per stage
    Nanoseconds makespan = 0;
    Bytes peak = 0;   ///< of the fullest device
    double share = 0; ///< offloaded share of the bytes that all forwards save
};
/// The trade-off of memory against time: without offload, then adding stages one by one, first those whose activations
/// wait longest for their backward (as PipeOffload chooses, arXiv 2503.01328). Throws Error as predict() and
/// withOffload() do. O(stages · blocks). `stop`: as above.
std::vector<OffloadPoint> offloadCurve(const Design& design, const std::function<bool()>& stop = {});
/// The design with the first `count` stages of that sequence; at most the stages that save any bytes.
Design withLongestWaiting(const Design& design, int count);

/// The design with the user's choice of offload. Throws Error at `where` for a stage that does not exist.
Design withOffload(const Design& design, const OffloadChoice& choice, const std::string& where);

} // namespace pipewright
