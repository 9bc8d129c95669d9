// SPDX-License-Identifier: GPL-3.0-or-later
// Many microbatches from few: between filling and draining a good schedule repeats itself, so a schedule of some three
// microbatches per device, which is quick to search, is cut open in the middle and what runs there is repeated as often
// as microbatches are missing. Filling and draining stay as they were found. O(tasks).
#pragma once

#include "core/search/searchmodel.h"

#include <optional>

namespace pipewright {

/// So few microbatches that a search is worth it and (microbatches - few) is a multiple of each of 1 to 4; 0: not worth
/// it.
int fewMicrobatches(int microbatches, int devices);

/// The design with so many microbatches that are all alike, in any legal order.
Design withMicrobatches(const Design& design, int microbatches);

/// Lanes of `many` from `lanes` of `few`, which start at `starts`: from time `cut` on every device repeats the blocks
/// of `period` microbatches. Nothing where a device does not run every pass that often there.
std::optional<Lanes> repeated(const SearchModel& few, const Lanes& lanes, const std::vector<Nanoseconds>& starts,
                              const SearchModel& many, Nanoseconds cut, int period);

} // namespace pipewright
