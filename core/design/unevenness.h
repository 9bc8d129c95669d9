// SPDX-License-Identifier: GPL-3.0-or-later
// Whether stages whose times are not in proportion to their work stand on devices of different pace or hold layers of
// different pace. The two part when layers move to other devices, and only some recordings tell: where devices held
// several stages, or where the layers' times are known.
#pragma once

#include "core/design/design.h"
#include "core/design/recutcosts.h"

#include <string>

namespace pipewright {

struct UnevennessFound {
    Unevenness assumed = Unevenness::OfDevices;
    bool known = false; ///< by what `why` says; or the stages are even, and nothing depends on it
    std::string why;    ///< "each device's stages are alike"
};

/// Of costs that are not from a formula; those of a formula are made anew, and known. O(stages + layers).
UnevennessFound unevennessOf(const Design& design);

} // namespace pipewright
