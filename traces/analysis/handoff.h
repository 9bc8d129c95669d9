// SPDX-License-Identifier: GPL-3.0-or-later
// Link costs from the records of the transfers themselves: how long each took, and how late it began after its value
// was made, its target was free and earlier transfers on the same wire had ended. Neither the blocks that wait for a
// transfer nor the length of the step count: a block that begins later than its value arrives has a host gap
// (hostgaps.h).
#pragma once

#include "core/design/costs.h"
#include "core/predict/timeline.h"
#include "traces/analysis/samples.h"

#include <map>
#include <utility>
#include <vector>

namespace pipewright {

/// Times of the transfers of one size between one pair of devices.
struct LinkFit {
    int from = 0, to = 0;
    Bytes bytes = 0;
    Typical time{};
};

class Handoffs {
public:
    /// Keeps a reference to `program`. O(tasks).
    explicit Handoffs(const Program& program);
    /// Adds one measured step. O(tasks).
    void add(const Timeline& timeline);
    std::vector<LinkFit> fits() const; ///< by pair, then size
    /// Sets costs.link and costs.linkOfPair of every measured pair: latency and bandwidth by least squares over the
    /// medians where transfers of several sizes were seen, otherwise latency alone. Without a measured transfer the
    /// costs are unchanged.
    void assignTo(Costs& costs) const;

private:
    using BySize = std::map<Bytes, std::vector<Nanoseconds>>;
    static LinkCosts fitOne(const BySize& sizes, double bytesPerSecond);

    const Program& m_program;
    std::vector<Bytes> m_bytes;           ///< per task; transfers only
    std::vector<TaskId> m_beforeOnTarget; ///< likewise: the target's last block before it receives; none: there is none
    std::map<std::pair<int, int>, BySize> m_pairs;
};

} // namespace pipewright
