// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of PyTorch's stock schedules, which have one stage per rank and no names for what their ranges run.
// ScheduleGPipe names "Forward 3" and "Backward 3". Schedule1F1B names nothing: its blocks are the operators between
// its sends and receives. Backwards are autograd's operators; forwards are the operators that autograd's arrows lead
// back to.
#pragma once

#include "traces/import/pipelineranges.h"

#include <string>

namespace pipewright {

struct StockBlocks {
    std::vector<PipelineRange> ranges;
    /// Why there are no blocks though ranks send and receive, or compute in such ranges; empty for other traces.
    std::string refusal;
};
/// O(activities log activities).
StockBlocks stockBlocks(TraceData& data, const ProfilerSteps& steps);

} // namespace pipewright
