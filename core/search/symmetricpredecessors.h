// SPDX-License-Identifier: GPL-3.0-or-later
// Symmetric microbatches: any schedule can be renumbered so that every pass of a stage takes them in ascending order,
// which removes most orders from an exhaustive search. O(tasks).
#pragma once

#include "core/search/searchmodel.h"

namespace pipewright {

/// Per task the same pass of the previous microbatch, -1 for the first. Empty when microbatches differ, by times,
/// bytes, pins or kind of backward, or when blocks are locked.
std::vector<std::int32_t> symmetricPredecessors(const SearchModel& model);

} // namespace pipewright
