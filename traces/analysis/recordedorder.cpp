// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/recordedorder.h"

#include <algorithm>

namespace pipewright {

std::optional<Disorder> disorderOf(const Program& program, const Timeline& timeline)
{
    for (std::size_t device = 0; device < program.devices.size(); ++device) {
        TaskId latest = none; // the block with the latest start so far
        for (const Instruction& instruction : program.devices[device].instructions) {
            const TaskId t = instruction.task;
            if (instruction.kind != InstructionKind::Compute || timeline.start[t] == notRun)
                continue;
            if (latest != none && timeline.end[t] <= timeline.start[latest] && timeline.end[t] > timeline.start[t])
                return Disorder{static_cast<int>(device), t, latest};
            if (latest == none || timeline.start[t] > timeline.start[latest])
                latest = t;
        }
    }
    return std::nullopt;
}

} // namespace pipewright
