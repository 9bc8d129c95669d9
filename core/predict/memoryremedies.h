// SPDX-License-Identifier: GPL-3.0-or-later
// Changes of a design that exceeds its devices' memory, after which it fits: recomputing, offloading, another family.
// Each one is made and checked as `check` does it, so what is offered holds.
#pragma once

#include "core/design/design.h"

#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct MemoryRemedy {
    std::string name; ///< "recompute every stage", "switch to V-Half"
    Design design;
    Nanoseconds makespan = 0;
    Bytes peak = 0; ///< of the fullest device
};

/// The shortest step first, at most `most`. Two changes together are tried only where no single one is enough. Empty
/// when none fits, or once `stop` (asked before every try) returned true. O(tries x blocks), a dozen tries.
std::vector<MemoryRemedy> memoryRemedies(const Design& design, std::size_t most,
                                         const std::function<bool()>& stop = {});

} // namespace pipewright
