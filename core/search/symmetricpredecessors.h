// SPDX-License-Identifier: GPL-3.0-or-later
// Microbatches that are alike: then any schedule can be renamed so that every pass of a stage takes them in order,
// which leaves a search that looks at everything a small part of the orders. O(tasks).
#pragma once

#include "core/search/searchmodel.h"

namespace pipewright {

/// Per task the same pass of the microbatch before it, -1 for the first. Empty when microbatches differ, by times,
/// bytes, pins or kind of backward, or when blocks are locked.
std::vector<std::int32_t> symmetricPredecessors(const SearchModel& model);

} // namespace pipewright
