// SPDX-License-Identifier: GPL-3.0-or-later
// A bound for designs with too many blocks for constraint programming, from parts that are not: of microbatches that
// are alike and take their turns, any n in a row with what follows them are a schedule of few, in which stage 0's
// forwards are at least so long apart as constraint programming finds; and the last ones need at least so long until
// stage 0's last gradient. The times of the parts add up. What the microbatches before and behind a part would take of
// its devices is not seen, so this is below the best by some part of a microbatch's way per part; where memory is
// scarce it is far above the counted bounds, which do not see that microbatches that go down and up hinder each other.
#pragma once

#include "core/search/constraintsearch.h"

namespace pipewright {

class ProofByParts {
public:
    /// Parts of `most` microbatches at most; 0: of as many as constraint programming takes.
    ProofByParts(const Design& design, const SearchModel& model, const SearchOptions& options, Incumbent& incumbent,
                 int most = 0);
    /// Goes on for a slice, once there is a schedule, and proves its bound when both times are known. False when there
    /// is nothing left to do.
    bool goOn(const std::function<bool()>& stop);

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
