// SPDX-License-Identifier: GPL-3.0-or-later
// What a design that was made from another one took over besides its costs, and what it did not.
#pragma once

#include "core/design/design.h"

#include <string>
#include <vector>

namespace pipewright {

/// In sentences: another optimizer, recomputation and offload that stay or do not, fewer or more replicas. `from`: the
/// design that the costs are of.
std::vector<std::string> carriedOver(const Design& from, const Design& to);

/// "SGD with momentum in place of AdamW" where the models differ in it; empty otherwise.
std::string optimizerChange(const Design& from, const Design& to);

} // namespace pipewright
