// SPDX-License-Identifier: GPL-3.0-or-later
// The best order under a memory limit where stages may offload their saved activations (core/program/offloadplan.h).
// The search of orders does not count offload, so it runs within the limit, within twice the limit and without a limit.
// For each order found the predictor chooses the stages that offload until the schedule fits; the fastest that fits
// wins, the design as it was among them. The bound is that of the search without a limit, which holds with offload too:
// copies only make blocks wait. O(blocks) per order, and O(stages²) predictions.
#pragma once

#include "core/predict/offloadedstages.h"
#include "core/search/search.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright {

struct OffloadTrial {
    bool given = false;               ///< the design as it was
    std::optional<Bytes> within;      ///< memory limit of the search of the order; unset: no limit
    std::optional<Nanoseconds> value; ///< nothing: no such order, or it does not fit even with offload
    std::vector<bool> offload;        ///< per stage
};

struct OffloadSearchResult {
    Design design; ///< with the order found and the stages that offload
    Nanoseconds value = 0, bound = 0;
    double gap = 0;       ///< (value - bound) / value
    std::string unproved; ///< as of SearchResult: why the bound proves nothing
    std::vector<OffloadTrial> trials;
    bool cancelled = false;
};

/// The objective is the makespan; the time is divided among the orders. Throws Error for a limit that is a factor,
/// where the link to the host's memory is not known, and when nothing fits.
OffloadSearchResult searchWithOffload(const Design& design, const SearchOptions& options);

} // namespace pipewright
