// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/runtorun.h"

#include "traces/analysis/replay.h"

namespace pipewright {

RunToRun runToRun(const std::string& firstRun, const Program& program, const Comparison& comparison, BlockTime by)
{
    const TraceReader first(firstRun, by);
    RunToRun result{lengthOf(first.timeline(program, first.medianStep())), comparison.measuredMakespan};
    if (result.first > 0) {
        const auto share = [&](Nanoseconds length) {
            return static_cast<double>(length) / static_cast<double>(result.first) - 1;
        };
        result.change = share(result.second);
        result.errorOfFirst = share(comparison.predictedMakespan);
    }
    return result;
}

} // namespace pipewright
