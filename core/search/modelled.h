// SPDX-License-Identifier: GPL-3.0-or-later
// For which designs a bound of the search holds over every order that can run. SearchModel is a relaxation of what is
// predicted: no order is shorter, and none needs less memory, than in the model. That is known for each part of a
// design on a list; a design with anything else is searched like the others, and nothing is called proved.
#pragma once

#include "core/design/design.h"

#include <string>

namespace pipewright {

/// Whether the search places all that the schedule states. O(blocks).
bool isPlacedWhole(const Schedule& schedule);

/// Why a bound proves nothing about this design, one clause; empty: it holds over every order. O(blocks).
std::string whyNotProved(const Design& design);

} // namespace pipewright
