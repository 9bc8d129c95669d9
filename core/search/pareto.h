// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against time: the best order for each of several memory limits. A schedule that fits into less memory fits
// into more, so every search starts from what the one before it found.
#pragma once

#include "core/search/search.h"

#include <optional>

namespace pipewright {

struct ParetoPoint {
    double factor = 0;                  ///< the limit, x devices microbatches of activations
    std::optional<SearchResult> result; ///< nothing: no schedule fits, see `reason`
    std::string reason;
    bool onFront = false; ///< no smaller limit gives as short a time
};

/// `points` limits evenly from `from` to `to`, ascending. options.limit does not count; options.timeLimit is shared
/// out evenly. Stops early, with the points that are done, when cancelled. Throws Error as search() does, but not
/// for a limit that nothing can meet.
std::vector<ParetoPoint> searchFrontOf(const Design& design, const SearchOptions& options, double from, double to,
                                       int points);

} // namespace pipewright
