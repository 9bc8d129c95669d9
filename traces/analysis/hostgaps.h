// SPDX-License-Identifier: GPL-3.0-or-later
// The time that the host needs before a block, from measured steps: from when the device was free and the block's last
// input had arrived until the block began, without waits for memory. Blocks with nothing before them in the step do not
// count, nor do blocks whose inputs' arrival is unknown.
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
    /// Sets the median per device and operation. An operation without samples gets the median of the device's others, a
    /// device without samples that of all devices; these are marked as estimated. Without any sample the costs are
    /// unchanged.
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
