// SPDX-License-Identifier: GPL-3.0-or-later
// All orders of a small design, by branch and bound: blocks are appended in the order of their starts, and a branch
// ends where the work left on a device, or the way on from a block, cannot beat the best schedule any more. Gets
// through some thirty to eighty blocks, the more the more alike microbatches are, as they keep their order then;
// what it exhausts is proved. Memory and locks are followed exactly.
#pragma once

#include "core/search/incumbent.h"

#include <functional>

namespace pipewright {

class ExactSearch {
public:
    ExactSearch(const SearchModel& model, const SearchOptions& options, Incumbent& incumbent);
    /// True when every order was looked at or ruled out within so many nodes; the best schedule is then proved.
    bool run(std::int64_t nodes, const std::function<bool()>& stop);

private:
    void branch(std::size_t placed, Nanoseconds from);
    bool hopeless(std::int32_t task, Nanoseconds start) const;
    Nanoseconds startOf(std::int32_t task) const; ///< negative: something it needs has not been placed
    void findWays();

    const SearchModel& m_model;
    const SearchOptions& m_options;
    Incumbent& m_incumbent;
    std::function<bool()> m_stop;
    std::vector<std::vector<Nanoseconds>>
        m_way; ///< device, task: from its start to the device's last block at least; -1: none
    std::vector<std::vector<std::int32_t>> m_inputs;
    std::vector<std::int32_t>
        m_twinBefore; ///< per task: the same pass of the microbatch before, which comes first; -1: none
    std::vector<Nanoseconds> m_end, m_free, m_first,
        m_left; ///< per task; per device: free from, first start, work left
    std::vector<std::uint8_t> m_placed;
    std::vector<Bytes> m_live, m_unusedRoom;
    Lanes m_lanes;
    Nanoseconds m_begin = -1; ///< start of the first block; -1: none is placed
    std::int64_t m_nodes = 0;
    bool m_cut = false; ///< not everything was looked at
};

} // namespace pipewright
