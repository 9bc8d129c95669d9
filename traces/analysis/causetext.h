// SPDX-License-Identifier: GPL-3.0-or-later
// A cause of a difference in as few words as a column of a table has room for, with the devices' names as the screen
// shows them elsewhere.
#pragma once

#include "traces/analysis/explanation.h"

#include <functional>

namespace pipewright {

/// "slower blocks on GPU 1", "slower transfers GPU 0 → GPU 1".
std::string shortText(const Cause& cause, const std::function<std::string(int)>& nameOfDevice);

} // namespace pipewright
