// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of PyTorch's stock schedules, which have one stage per rank and do not say in their ranges what they run.
// ScheduleGPipe names "Forward 3" and "Backward 3". Schedule1F1B names nothing: its blocks are the operators between
// its sends and receives, backwards those of autograd and forwards those that autograd's arrows lead back to.
#pragma once

#include "traces/import/pipelineranges.h"

#include <string>

namespace pipewright {

struct StockBlocks {
    std::vector<PipelineRange> ranges;
    /// Why there are none though ranks send and receive, or compute in such ranges; empty for other traces.
    std::string refusal;
};
/// O(activities log activities).
StockBlocks stockBlocks(TraceData& data, const ProfilerSteps& steps);

} // namespace pipewright
