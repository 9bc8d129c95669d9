// SPDX-License-Identifier: GPL-3.0-or-later
// Which stages offload, chosen by what the predictor says: first those that cost no time, then, while a device needs
// more memory than it has, those that cost the least.
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
    Design design;                         ///< with them
    std::vector<bool> forFree;             ///< per stage: offloads, and the step is no longer for it
    std::vector<bool> forRoom;             ///< offloads since the memory of a device demands it
    Nanoseconds before = 0, after = 0;     ///< makespan
    std::vector<Bytes> peaks, peaksBefore; ///< per device
    bool fits = true;                      ///< no device needs more than it has, as far as that is known
    std::string text() const;              ///< "stages 0-1 for free, stage 3 for room: …"
};

/// `limit`: memory of each device instead of its own. Throws Error as predict() and withOffload() do. O(stages² ·
/// blocks). `stop`: asked now and then; what is found so far is the result.
OffloadedStages chooseOffloadedStages(const Design& design, std::optional<Bytes> limit = std::nullopt,
                                      const std::function<bool()>& stop = {});

/// What the step takes and needs when so many stages offload.
struct OffloadPoint {
    std::vector<bool> offload; ///< per stage
    Nanoseconds makespan = 0;
    Bytes peak = 0;   ///< of the fullest device
    double share = 0; ///< of the bytes that all forwards keep, what leaves for the host's memory
};
/// Memory against time over how much leaves: with no stage, then stage by stage those whose activations wait longest
/// for their backward (as PipeOffload chooses, arXiv 2503.01328). Throws Error as predict() and withOffload() do.
/// O(stages · blocks). `stop`: as above.
std::vector<OffloadPoint> offloadCurve(const Design& design, const std::function<bool()>& stop = {});
/// The design with the `count` stages that are first on that way; no more than keep anything.
Design withLongestWaiting(const Design& design, int count);

/// The design as a person asks for it. Throws Error at `where` for a stage that does not exist.
Design withOffload(const Design& design, const OffloadChoice& choice, const std::string& where);

} // namespace pipewright
