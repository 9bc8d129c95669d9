// SPDX-License-Identifier: GPL-3.0-or-later
// The data flow between stages besides the chain s -> s+1: skip connections, and parameters that two stages share (tied
// embedding and output head).
#pragma once

#include "core/schedule/validate.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pipewright {

/// One parameter held by two stages. Each accumulates its own gradient; `root`'s sum comes first in the
/// reduction root + other that follows the loop, and both owners then apply the same update.
struct SharedParameter {
    int rootStage = 0;
    int otherStage = 0;
    Bytes bytes = 0; ///< of the gradient
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
