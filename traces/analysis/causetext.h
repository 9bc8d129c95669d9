// SPDX-License-Identifier: GPL-3.0-or-later
// A short text of a cause for a table column, with the devices' names as shown elsewhere.
#pragma once

#include "traces/analysis/explanation.h"

#include <functional>

namespace pipewright {

/// "slower blocks on GPU 1", "slower transfers GPU 0 → GPU 1".
std::string shortText(const Cause& cause, const std::function<std::string(int)>& nameOfDevice);

} // namespace pipewright
