// SPDX-License-Identifier: GPL-3.0-or-later
// The times of a shared stage's passes according to its plan: of every part on each member, and of the collectives.
#pragma once

#include "core/design/groupstages.h"

namespace pipewright {

/// Of F, R, I, W and B; nothing of U. O(instructions · members).
std::array<PassParts, opCount> plannedPasses(const sharding::SharedStage& stage);

} // namespace pipewright
