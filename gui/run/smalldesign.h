// SPDX-License-Identifier: GPL-3.0-or-later
// What CPU threads train of a design whose model they cannot train, or that has none.
#pragma once

#include "core/design/design.h"

namespace pipewright {

/// The schedule of `base` with a small GPT (the preset byte-gpt) on CPU threads: its order, placement, recomputation
/// and offloading as they are, costs by formula. The model has a layer for every stage and, where `base` has them
/// apart, a head that is not tied to the embedding. Throws Error where the schedule needs what the small design does
/// not have, such as sequences that can be cut into as many pieces.
Design smallDesign(const Design& base);

} // namespace pipewright
