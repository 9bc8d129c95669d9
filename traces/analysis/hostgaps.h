// SPDX-License-Identifier: GPL-3.0-or-later
// What the host needs before a block, from measured steps: the time from when the device was free and the block's last
// input had arrived until the block began, without waits for memory. The first block of a step says nothing about it,
// and neither does a block of which it is not known when its input arrived.
#pragma once

#include "core/design/costs.h"
#include "core/predict/timeline.h"
#include "traces/analysis/samples.h"

#include <array>
#include <vector>

namespace pipewright {

struct HostGapFit {
    int device = 0;
    Op op = Op::F;
    Typical gap{};
};

class HostGapSamples {
public:
    /// Keeps references to both. `costs`: how long transfers without a record took.
    HostGapSamples(const Program& program, const Costs& costs);
    /// Adds one measured step. O(tasks).
    void add(const Timeline& timeline);
    /// Every operation of every device gets its median, one that was not seen that of the device's others, a device
    /// that was not seen that of all; such are marked as estimated. Without a sample the costs are unchanged.
    void assignTo(Costs& costs) const;
    std::vector<HostGapFit> fits() const; ///< by device, then operation

private:
    bool knowsInputs(TaskId task, const Timeline& timeline) const;

    const Program& m_program;
    std::vector<Nanoseconds> m_durations;
    std::vector<TaskId> m_partner;
    std::vector<std::array<std::vector<Nanoseconds>, opCount>> m_samples; ///< per device
};

} // namespace pipewright
