// SPDX-License-Identifier: GPL-3.0-or-later
// Many microbatches from few: a good schedule is periodic between warm-up and cool-down. A schedule of about three
// microbatches per device, which is quick to search, is cut in the middle and its period repeated for the missing
// microbatches. O(tasks).
#pragma once

#include "core/search/searchmodel.h"

#include <optional>

namespace pipewright {

/// The number of microbatches to search, such that (microbatches - few) is a multiple of 1 to 4; 0: not worthwhile.
int fewMicrobatches(int microbatches, int devices);

/// The design with `microbatches` symmetric microbatches, in a legal order.
Design withMicrobatches(const Design& design, int microbatches);

/// Extends `lanes` of `few`, with start times `starts`, to lanes of `many`: from time `cut` on every device repeats the
/// blocks of `period` microbatches. Nothing when a device does not run every pass `period` times there.
std::optional<Lanes> repeated(const SearchModel& few, const Lanes& lanes, const std::vector<Nanoseconds>& starts,
                              const SearchModel& many, Nanoseconds cut, int period);

} // namespace pipewright
