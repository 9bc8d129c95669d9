// SPDX-License-Identifier: GPL-3.0-or-later
// A schedule whose costs are carried over to another one of the same model: --costs-from, and the designer's
// counterpart.
#pragma once

#include "core/design/design.h"

#include <string>

namespace pipewright {

/// A design file as it is; of a recorded run its design, calibrated with it. Throws Error.
Design readCostsFrom(const std::string& path);

} // namespace pipewright
