// SPDX-License-Identifier: GPL-3.0-or-later
// Link costs from measured steps. A pipeline is delayed by the hand-off: the time from the producer's end until a
// waiting consumer can start, which is the copy and the time to notice it (thread wake-up, polling, launch). Hand-offs
// are averaged per size and device pair; the copy's own duration is used where no consumer waited.
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
    /// Sets costs.link and costs.linkOfPair of every measured pair: latency and bandwidth by least squares where
    /// transfers of several sizes were seen, otherwise latency alone. Without a measured transfer the costs are
    /// unchanged and the result is false.
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
