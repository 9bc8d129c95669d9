// SPDX-License-Identifier: GPL-3.0-or-later
// The designer as a program: application, look, recovery after a crash, and the first window.
#pragma once

#include "core/design/design.h"

#include <string>
#include <vector>

namespace pipewright {

/// Opens each file in its own window; without files, the file of the last session or else the example. Returns the exit
/// code. Needs a screen (or QT_QPA_PLATFORM=offscreen).
int runDesigner(int argc, char** argv, const std::vector<std::string>& files);

/// The default design: a preset model on four devices with ZB-H1, or without presets the same schedule with fixed
/// costs.
Design exampleDesign();

} // namespace pipewright
