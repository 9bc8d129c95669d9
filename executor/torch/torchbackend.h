// SPDX-License-Identifier: GPL-3.0-or-later
// A run through PyTorch's distributed runtime: one Python process per device of the design, supervised by this process.
// Reports become an ordinary trace as they arrive. However a run ends, no process is left, and everything recorded so
// far is in the trace.
#pragma once

#include "executor/torch/torchjob.h"

namespace pipewright {

/// Throws Error for designs that PyTorch cannot run (before anything is started), and when a run fails: with the rank
/// that failed first, its block and the reason; with a rank that died; or, if no report came within the deadline, with
/// the place of every rank.
RunResult runWithTorch(const Design& design, const TorchOptions& options);

/// The trace of ranks that the user's own torchrun started, from rank0.jsonl … in `folder`. Throws Error, also for
/// failures that the ranks reported and for ranks that did not finish; the trace then holds what was recorded.
RunResult collectTorchRun(const Design& design, const std::string& folder, const TorchOptions& options);

} // namespace pipewright
