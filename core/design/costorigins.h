// SPDX-License-Identifier: GPL-3.0-or-later
// Where the costs of a design come from, in words (measured, formula, given), so that readers can judge the numbers
// that follow from them.
#pragma once

#include "core/design/design.h"

#include <initializer_list>
#include <string>

namespace pipewright {

/// Of the times of these operations, and of estimated links: "F and B measured, I and W estimated".
std::string originsText(const Design& design, std::initializer_list<Op> ops);

/// What is estimated: "I and W of stages 1-3, link 2 -> 0"; empty when nothing is.
std::string estimatesText(const Design& design);

/// What the host adds before blocks: "12 us to 80 us before a block"; empty when nothing.
std::string hostGapsText(const Design& design);

} // namespace pipewright
