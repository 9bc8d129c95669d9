// SPDX-License-Identifier: GPL-3.0-or-later
// The bytes that one microbatch holds in a stage, from its F to its last backward block, as steps and as intervals. The
// intervals are what a cumulative resource of constraint programming takes. O(1): a microbatch has at most four blocks
// in a stage.
#pragma once

#include "core/search/searchmodel.h"

#include <vector>

namespace pipewright {

class HeldBytes {
public:
    HeldBytes(const SearchModel& model, StageIndex stage, MicrobatchIndex microbatch);

    /// From the start of one task to the end of another.
    struct Interval {
        std::int32_t from, until;
        Bytes bytes;
    };
    /// Together they hold at every time what the microbatch holds: while a block runs, what it needs then.
    std::vector<Interval> intervals() const;

    Bytes throughout() const { return least(0, m_steps.size() - 1); } ///< at least, from the first block to the last
    Bytes afterForward() const { return m_steps.front().after; }
    std::int32_t last() const { return m_steps.back().task; } ///< which releases the rest
    bool isConstant() const;                                  ///< the same from F to the end

private:
    struct Step {
        std::int32_t task;
        Bytes during, after; ///< while the block runs, and from its end to the start of the next one
    };
    Bytes least(std::size_t from, std::size_t to) const;
    void cover(std::size_t from, std::size_t to, Bytes known, std::vector<Interval>& intervals) const;

    std::vector<Step> m_steps;
};

} // namespace pipewright
