// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against time: the best order for each of several memory limits. A schedule that fits one limit fits every
// larger one, so each search starts from the result before it.
#pragma once

#include "core/search/search.h"

#include <optional>

namespace pipewright {

struct ParetoPoint {
    double factor = 0;                  ///< the limit in units of (devices × one microbatch's activations)
    std::optional<SearchResult> result; ///< nothing: no schedule fits, see `reason`
    std::string reason;
    bool onFront = false; ///< no smaller limit gives as short a time
};

/// `points` limits evenly spaced from `from` to `to`. options.limit is ignored; options.timeLimit is divided evenly. A
/// stop returns the finished points. Throws Error as search() does, except for an infeasible limit.
std::vector<ParetoPoint> searchFrontOf(const Design& design, const SearchOptions& options, double from, double to,
                                       int points);

} // namespace pipewright
