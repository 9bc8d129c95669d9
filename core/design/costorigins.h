// SPDX-License-Identifier: GPL-3.0-or-later
// Describes where the costs of a design come from (measured, formula, given), so that readers can judge the predicted
// numbers.
#pragma once

#include "core/design/design.h"

#include <string>
#include <vector>

namespace pipewright {

/// The origins of the times of these operations, and of estimated links: "F and B measured, I and W estimated".
std::string originsText(const Design& design, const std::vector<Op>& ops);

/// What is estimated: "I and W of stages 1-3, link 2 -> 0"; empty when nothing is.
std::string estimatesText(const Design& design);

/// The host gaps before blocks: "12 us to 80 us before a block"; empty when there are none.
std::string hostGapsText(const Design& design);

} // namespace pipewright
