// SPDX-License-Identifier: GPL-3.0-or-later
// What a link costs, learnt from measured steps. What delays a pipeline is not how long the copy ran but
// how long after the producer's end a consumer that was waiting could start: the copy, and the time it took
// to notice it (wake-up of a thread, polling, a launch). That hand-off is what a link's cost stands for in
// the predictor, so that is what is averaged; the copy's own record serves where no consumer ever waited.
#pragma once

#include "core/design/costs.h"
#include "core/predict/timeline.h"

#include <map>
#include <utility>
#include <vector>

namespace pipewright {

class Handoffs {
public:
    /// Keeps a reference to `program`. O(tasks).
    explicit Handoffs(const Program& program);
    /// Adds one measured step. O(tasks).
    void add(const Timeline& timeline);
    /// Sets costs.link and costs.linkOfPair of every measured pair: latency and bandwidth by least squares
    /// where transfers of several sizes were seen, otherwise latency alone. Without any measured transfer
    /// the costs stay as they are, and the answer is false.
    bool fit(Costs& costs) const;

private:
    struct Sums { ///< of the transfers of one size between one pair of devices
        double waited = 0, copied = 0;
        std::int64_t waitedCount = 0, copiedCount = 0;
        double seconds() const; ///< mean hand-off, of the copies when no consumer waited
        double weight() const;
    };
    using BySize = std::map<Bytes, Sums>;
    static LinkCosts fitOne(const BySize& sizes, double bytesPerSecond);

    const Program& m_program;
    std::vector<Bytes> m_bytes;                         ///< per task; transfers only
    std::vector<std::pair<TaskId, TaskId>> m_consumers; ///< (transfer, compute task that needs it)
    std::vector<std::pair<TaskId, TaskId>> m_extra;     ///< (task, one more task it needs), sorted
    std::map<std::pair<int, int>, BySize> m_pairs;
};

} // namespace pipewright
