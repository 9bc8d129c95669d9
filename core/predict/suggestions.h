// SPDX-License-Identifier: GPL-3.0-or-later
// Edits that would help: around one block (or the idle time that it ends) moves of single blocks, and short runs of
// such moves, that shorten the step or lower the highest memory peak; and holding the gathered parameters of its stage.
// Every edit is checked by the schedule's rules and predicted as the designer predicts it, so the returned differences
// are exact. The search makes a fixed number of predictions, so its result is the same on every machine: O(evaluations
// x blocks).
#pragma once

#include "core/predict/predict.h"

#include <functional>
#include <vector>

namespace pipewright {

/// Puts one block directly before or after another block of the same device.
struct BlockMove {
    Block block;
    Block neighbour;
    bool before = true;
    int device = -1;
    bool operator==(const BlockMove&) const = default;
};

struct Suggestion {
    /// In the order in which they are made; none: the subject's stage, or all, hold their gathered parameters (ZeRO 3).
    std::vector<BlockMove> moves;
    Schedule schedule; ///< after all of them
    // Differences from the prediction of the design as it is; negative is less.
    Nanoseconds makespan = 0;
    Bytes peakBytes = 0;        ///< of the device with the highest peak
    double peakActivations = 0; ///< the same in microbatches on one device
};

struct SuggestionLimits {
    std::size_t most = 3;          ///< suggestions returned
    int evaluations = 900;         ///< predictions made at most …
    std::int64_t work = 6'000'000; ///< … and blocks predicted in all of them (but always a dozen predictions)
    int steps = 3;                 ///< moves in one suggestion
    double slower = 0.02;          ///< share of the makespan that less memory may cost
};

/// Best first: those that shorten the step most, then one that lowers the peak. Of edits that differ only in the moved
/// microbatch and have the same effect, only one is returned. Edits that put a device
/// over its memory are left out, unless one is over it already. Empty when nothing helps, when the placed blocks cannot
/// run, or once `cancelled` (asked before every prediction) returned true.
std::vector<Suggestion> suggestEdits(const Design& design, const Block& subject, const SuggestionLimits& limits = {},
                                     const std::function<bool()>& cancelled = {});

} // namespace pipewright
