// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/gapreasons.h"

#include <algorithm>

namespace pipewright {

GapReasons reasonsOf(const Program& program, const Timeline& predicted, const Explanation& explanation,
                     const IdleGap& gap)
{
    GapReasons reasons;
    if (gap.before == none)
        return reasons;
    TaskId source = program.afterData[gap.before];
    if (source != none && moves(program.tasks[source].kind)) {
        reasons.transfer = source;
        source = program.afterData[source];
    }
    if (source != none && program.tasks[source].kind == TaskKind::Compute) {
        reasons.producer = source;
        const Timeline& measured = explanation.completed;
        reasons.producerLonger =
            (measured.end[source] - measured.start[source]) - (predicted.end[source] - predicted.start[source]);
        for (const BlockDifference& difference : explanation.blocks)
            if (difference.task == source)
                reasons.producerWhy = difference.why;
    }
    if (reasons.transfer == none)
        return reasons;
    for (const Cause& cause : explanation.causes) {
        const bool isOfIt = std::find(cause.tasks.begin(), cause.tasks.end(), reasons.transfer) != cause.tasks.end();
        if (isOfIt && cause.kind == Cause::Kind::Contention)
            reasons.linkBusy = true;
        if (isOfIt && cause.kind == Cause::Kind::HostGap)
            reasons.lateHost = cause.device;
    }
    return reasons;
}

const IdleGap* gapBefore(const Explanation& explanation, int device, TaskId block)
{
    const auto found = std::find_if(explanation.gaps.begin(), explanation.gaps.end(),
                                    [&](const IdleGap& gap) { return gap.device == device && gap.before == block; });
    return found == explanation.gaps.end() ? nullptr : &*found;
}

} // namespace pipewright
