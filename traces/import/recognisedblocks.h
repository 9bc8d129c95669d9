// SPDX-License-Identifier: GPL-3.0-or-later
// Recognises blocks of a pipeline in another tool's trace. torch.distributed.pipelining puts every action into a range
// named "PP:<action>" (PP:0F3, PP:1RECV_F0, PP:(0F4;7B1)OVERLAP_F_B). Ranges with Pipewright's names ("F0.3"), which
// resources/examples/megatron_nvtx.py writes, are recognised too, and so are stock schedules without names
// (stockschedules.h). A block lasts from its first to its last kernel, of those launched within the range on its
// thread, for a backward also on autograd's thread; NCCL kernels count for transfers only. Without kernels it is the
// range itself, from the end of the receive that it waits for.
#pragma once

#include "traces/store/activitystore.h"

namespace pipewright {

/// Steps are numbered by ranges ProfilerStep#N if there are any, else by the n-th time that a rank runs the same
/// action. Duplicates within a step are reported as repairs. Lanes that have such ranges are no longer
/// TraceLane::unknown. O(activities log activities).
RecognisedBlocks recogniseBlocks(TraceData& data);

} // namespace pipewright
