// SPDX-License-Identifier: GPL-3.0-or-later
// A lower bound for designs with too many blocks for constraint programming. With symmetric microbatches, n + 1
// consecutive ones form a small schedule of their own, so the least time that constraint programming proves for it
// holds between stage 0's forwards k and k + n. The last microbatches need at least the time proved for them until
// stage 0's last gradient. The times of the parts add up. A part ignores the microbatches outside it, so each part
// makes the bound too low by a fraction of a microbatch's path. Where memory is scarce the bound is far above those of
// bounds.h, which ignore that forward and backward paths compete.
#pragma once

#include "core/search/constraintsearch.h"

namespace pipewright {

class ProofByParts {
public:
    /// Parts of at most `most` microbatches; 0: as many as constraint programming handles.
    ProofByParts(const Design& design, const SearchModel& model, const SearchOptions& options, Incumbent& incumbent,
                 int most = 0);
    /// Runs one slice, once there is a schedule, and proves the bound when both times are known. False when finished.
    bool resume(const std::function<bool()>& stop);

private:
    bool begin();

    const Design& m_design;
    const SearchModel& m_model;
    const SearchOptions& m_options;
    Incumbent& m_incumbent;
    int m_most, m_parts = 0, m_each = 0, m_last = 0; ///< parts of m_each microbatches, and the last ones
    std::unique_ptr<SearchModel> m_eachModel, m_lastModel;
    std::unique_ptr<LeastTimeSearch> m_eachSearch, m_lastSearch;
    int m_slices = 0;
};

} // namespace pipewright
