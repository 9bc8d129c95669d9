// SPDX-License-Identifier: GPL-3.0-or-later
// What a prediction by formula leaves out, for this design: the one list of it, which `predict` shows.
#pragma once

#include "core/design/design.h"

#include <string>
#include <vector>

namespace pipewright {

/// Phrases, such as "the host's time before a block". Empty where times are given or measured: what was measured is in
/// them. O(1).
std::vector<std::string> leftOut(const Design& design);

} // namespace pipewright
