// SPDX-License-Identifier: GPL-3.0-or-later
// A run through PyTorch's distributed runtime: one Python process per device of the design, supervised from here, whose
// reports become an ordinary trace while they come in. However a run ends, no process is left, and what was recorded
// stays in the trace.
#pragma once

#include "executor/torch/torchjob.h"

namespace pipewright {

/// Throws Error: what PyTorch cannot run (before anything is started), and why a run broke off: the rank that failed
/// first, its block and its reason; a rank that died; nothing heard within the deadline, and where every rank was.
RunResult runWithTorch(const Design& design, const TorchOptions& options);

/// The trace of ranks that a person's own torchrun started: from rank0.jsonl … in `folder`. Throws Error, also for what
/// the ranks reported as failed and for ranks that did not come to their end; then the trace holds what was recorded.
RunResult collectTorchRun(const Design& design, const std::string& folder, const TorchOptions& options);

} // namespace pipewright
