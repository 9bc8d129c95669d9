// SPDX-License-Identifier: GPL-3.0-or-later
// Link costs from the records of what used the links: how long each transfer, sum over replicas and copy to the host's
// memory took, and how late a transfer began after its value was made, its target was free and earlier transfers on the
// same wire had ended. Neither the blocks that wait for a transfer nor the length of the step count: a block that
// begins later than its value arrives has a host gap (hostgaps.h).
#pragma once

#include "core/design/costs.h"
#include "core/predict/evaluator.h"
#include "core/predict/timeline.h"
#include "traces/analysis/samples.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pipewright {

/// Times of what moved so many bytes from one device to another.
struct LinkFit {
    int from = 0, to = 0;
    Bytes bytes = 0;
    Typical time{};
};

class Handoffs {
public:
    /// Keeps references to `program` and to the design's costs. O(tasks).
    Handoffs(const Program& program, const Costs& costs);
    /// Adds one measured step. O(tasks log tasks).
    void add(const Timeline& timeline);
    std::vector<LinkFit> fits() const; ///< by pair, then size
    /// Sets costs.link, costs.linkOfPair and costs.hostLink from what was measured; without a measured transfer the
    /// costs are unchanged. Latency and bandwidth are fitted by least squares over the medians of each size. Where all
    /// sizes of a pair are alike, these cannot be told apart: its bandwidth is then that of all pairs that the design
    /// takes for alike, if these carried several sizes, else the design's own, and the rest is latency. Pairs that
    /// carried nothing get the costs of those that the design takes for alike. Returns notes that say so.
    std::vector<std::string> assignTo(Costs& costs) const;

private:
    using Pair = std::pair<int, int>;
    using BySize = std::map<Bytes, std::vector<Nanoseconds>>;
    using ByPair = std::map<Pair, BySize>;

    void addTransfer(TaskId task, const Timeline& timeline, TaskId before);
    void addSum(TaskId task, const Timeline& timeline, TaskId before);
    void take(Pair pair, Bytes bytes, Nanoseconds from, TaskId task, const Timeline& timeline, TaskId before);
    ByPair measured() const;

    const Program& m_program;
    const Costs& m_costs;
    Evaluator m_evaluator;
    std::vector<TaskId> m_beforeOnTarget; ///< per transfer: the target's last block before it receives; none: no block
    ByPair m_pairs, m_waited;             ///< m_waited: on a shared bus that was busy, without their waits
    BySize m_hostCopies;
};

} // namespace pipewright
