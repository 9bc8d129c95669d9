// SPDX-License-Identifier: GPL-3.0-or-later
// The data flow between stages besides the chain s -> s+1: skip connections, and parameters that two stages share (tied
// embedding and output head).
#pragma once

#include "core/schedule/validate.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pipewright {

/// One parameter held by two stages, or twice by one. Two stages on different devices each accumulate a gradient of
/// their own; `root`'s sum comes first in the reduction root + other that follows the loop, and both owners then apply
/// the same update. On one device it is one parameter with one gradient and one state (stagestate.h).
struct SharedParameter {
    int rootStage = 0;
    int otherStage = 0; ///< the same: one stage holds both of its uses
    Bytes bytes = 0;    ///< of the gradient
    /// Each use has a copy with a gradient and a state of its own on one device too, as the built-in executors have:
    /// their sums are then the same to the bit for every cut into stages.
    bool copied = false;
    /// Bytes of its values as they are held, where other parameters have fewer each; 0: as large a part of a stage's
    /// parameters as the gradient is of its gradients.
    Bytes values = 0;

    bool joinsStages() const { return rootStage != otherStage; }
    bool operator==(const SharedParameter&) const = default;
};

struct Dataflow {
    std::vector<SkipConnection> skips;
    std::vector<SharedParameter> shared;

    /// The bytes of skip connection `index`. All connections from one stage carry one value, with the bytes of the
    /// first.
    Bytes skipBytes(std::size_t index) const
    {
        return std::find_if(skips.begin(), skips.end(),
                            [&](const SkipConnection& skip) { return skip.fromStage == skips[index].fromStage; })
            ->bytes;
    }
    bool operator==(const Dataflow&) const = default;
};

} // namespace pipewright
