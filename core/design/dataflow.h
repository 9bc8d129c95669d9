// SPDX-License-Identifier: GPL-3.0-or-later
// What flows between stages besides the chain s -> s+1: skip connections, and parameters that two
// stages share (tied embedding and output head).
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

    /// Of what skip connection `index` carries: all from one stage carry one value, of the first one's size.
    Bytes skipBytes(std::size_t index) const
    {
        return std::find_if(skips.begin(), skips.end(),
                            [&](const SkipConnection& skip) { return skip.fromStage == skips[index].fromStage; })
            ->bytes;
    }
    bool operator==(const Dataflow&) const = default;
};

} // namespace pipewright
