// SPDX-License-Identifier: GPL-3.0-or-later
// All orders of a small design, by branch and bound: blocks are appended in order of their start times, and a branch is
// cut when the remaining work of a device or the longest path from a block cannot beat the best schedule. Solves some
// 30 to 80 blocks, more with symmetric microbatches, whose order it keeps. A finished search is a proof, since every
// order that may be shorter is predicted. Where transfers wait or a prediction does not fit into memory, another
// numbering of the same microbatches may be predicted otherwise: then all of them are tried. Memory and locks are
// respected exactly.
#pragma once

#include "core/search/incumbent.h"

#include <functional>

namespace pipewright {

class ExactSearch {
public:
    ExactSearch(const SearchModel& model, const SearchOptions& options, Incumbent& incumbent);
    /// True when every order was tried or ruled out within `nodes`; the best schedule is then proved optimal.
    bool run(std::int64_t nodes, const std::function<bool()>& stop);

private:
    void branch(std::size_t placed, Nanoseconds from);
    bool hopeless(std::int32_t task, Nanoseconds start) const;
    Nanoseconds startOf(std::int32_t task) const; ///< negative: a dependency has not been placed
    void findPaths();

    const SearchModel& m_model;
    const SearchOptions& m_options;
    Incumbent& m_incumbent;
    std::function<bool()> m_stop;
    std::vector<std::vector<Nanoseconds>>
        m_path; ///< per device and task: longest path from its start to the device's last block; -1: none
    std::vector<std::vector<std::int32_t>> m_inputs;
    std::vector<std::int32_t> m_predecessor; ///< per task: the same pass of the previous symmetric microbatch; -1: none
    std::vector<Nanoseconds> m_end, m_free, m_first,
        m_left; ///< per task; per device: free from, first start, work left
    std::vector<std::uint8_t> m_placed;
    std::vector<Bytes> m_live;
    ByDevice<Bytes> m_unusedSpace;
    Lanes m_lanes;
    Nanoseconds m_begin = -1; ///< start of the first block; -1: none is placed
    std::int64_t m_nodes = 0;
    bool m_cut = false;   ///< the node limit cut the search
    bool m_loose = false; ///< another numbering of an order's microbatches may be predicted otherwise
};

} // namespace pipewright
