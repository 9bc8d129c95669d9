// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of a pipeline in another tool's trace. torch.distributed.pipelining puts every action into a range named
// "PP:<action>" (PP:0F3, PP:1RECV_F0, PP:(0F4;7B1)OVERLAP_F_B); ranges of our own names ("F0.3") are known too, which
// resources/examples/megatron_nvtx.py leaves, and stock schedules without names (stockschedules.h). A block's time is
// from the first to the last kernel launched inside the range on its thread, for a backward also from autograd's
// thread; NCCL kernels count for transfers only. Without kernels it is the range itself, from the end of the receive
// that it waits for.
#pragma once

#include "traces/store/activitystore.h"

namespace pipewright {

/// Steps are those of ProfilerStep#N where there are such ranges, else the n-th time that a rank runs the same action.
/// Duplicates within a step are counted as repairs in the report. O(activities log activities).
RecognisedBlocks recogniseBlocks(TraceData& data);

} // namespace pipewright
