// SPDX-License-Identifier: GPL-3.0-or-later
// Checks whether a schedule can run, as far as this does not depend on costs: known stages
// and devices, every block present once and on the device that holds its stage, backward after
// forward, and no cycle between the orders of the devices (named block by block when there is one).
#pragma once

#include "core/base/diagnostic.h"
#include "core/schedule/schedule.h"

#include <span>

namespace pipewright {

/// A value that a forward sends to a later stage besides the chain s -> s+1 (skip connection). Connections from the
/// same stage carry the same value, with the size stated by the first of them.
struct SkipConnection {
    int fromStage = 0;
    int toStage = 0;
    Bytes bytes = 0;
    bool operator==(const SkipConnection&) const = default;
};

/// At most 32 diagnostics, errors first and otherwise in the order given, and a note that says how many more.
Diagnostics worstFirst(Diagnostics diagnostics);

/// All errors, limited and ordered by worstFirst(). O(blocks).
Diagnostics validate(const Schedule& schedule, std::span<const SkipConnection> skips = {});

} // namespace pipewright
