// SPDX-License-Identifier: GPL-3.0-or-later
// What a recorded step must hold.
#pragma once

#include "traces/store/tracereader.h"

#include <string>

namespace pipewright::test {

/// The label of the first task that a step of the trace has no times of, or that ends before it starts; empty: none.
inline std::string taskWithoutTimes(const TraceReader& reader, const Program& program, int step)
{
    const Timeline timeline = reader.timeline(program, step);
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (timeline.start[t] == notRun || timeline.end[t] < timeline.start[t])
            return program.label(t);
    return {};
}

} // namespace pipewright::test
