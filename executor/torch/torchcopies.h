// SPDX-License-Identifier: GPL-3.0-or-later
// Copies of the pipeline that a design counts (data-parallel ones), as PyTorch's ranks run them: one process per device
// and copy, each copy with rows of its own, joined as pipewright/counted.py says for the states that they share out.
#pragma once

#include "executor/torch/torchjob.h"

namespace pipewright {

/// The copies that the design counts, or else those of --replicas, which the user's own function joins.
int copiesOf(const Design& design, const TorchOptions& options);
/// Whether the design counts copies.
bool countsCopies(const Design& design);

/// Throws Error for copies that PyTorch's ranks do not run.
void requirePossibleCopies(const Design& design, const TorchOptions& options);

/// What the ranks do otherwise than the design says, of copies that it counts.
Diagnostics notesOfCopies(const Design& design);

} // namespace pipewright
