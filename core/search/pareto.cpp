// SPDX-License-Identifier: GPL-3.0-or-later
// One search per limit in ascending order, with the previous schedule as a hint. A limit that is proved infeasible
// costs O(blocks) only.
#include "core/search/pareto.h"

#include <algorithm>
#include <limits>

namespace pipewright {

std::vector<ParetoPoint> searchFrontOf(const Design& design, const SearchOptions& options, double from, double to,
                                       int points)
{
    std::vector<ParetoPoint> front;
    SearchOptions own = options;
    own.timeLimit = options.timeLimit / std::max(1, points);
    Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
    for (int i = 0; i < points && !options.stop.stop_requested(); ++i) {
        ParetoPoint& point = front.emplace_back();
        point.factor = points < 2 ? from : from + (to - from) * i / (points - 1);
        own.limit = {std::nullopt, point.factor};
        const SearchModel model(design, own.limit, own.locked);
        if (const Diagnostics impossible = whyImpossible(model, own.limit); hasErrors(impossible)) {
            point.reason = toString(impossible.front());
            continue;
        }
        point.result = search(design, own);
        point.onFront = point.result->value < best;
        best = std::min(best, point.result->value);
        own.hints.assign(1, point.result->schedule);
    }
    return front;
}

} // namespace pipewright
