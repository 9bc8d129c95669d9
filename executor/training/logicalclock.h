// SPDX-License-Identifier: GPL-3.0-or-later
// A Program run one task after the other, in its global order, on the calling thread: the oracle that threads must
// agree with to the bit. Every buffer lives from the task that defines it to its last use.
#pragma once

#include "executor/maths.h"

#include <memory>
#include <vector>

namespace pipewright {

class LogicalClock {
public:
    /// Keeps references to both. Throws Error for a program with reductions (replicas, shared parameters).
    LogicalClock(const Program& program, StageWork& work);

    double runStep(int step); ///< the step's loss

private:
    Region allocate(BufferId buffer);
    void release(TaskId task);

    const Program& m_program;
    StageWork& m_work;
    std::vector<std::unique_ptr<float[]>> m_memory; ///< per buffer
    std::vector<Region> m_regions;
    std::vector<std::vector<BufferId>> m_lastUsed; ///< per task
};

} // namespace pipewright
