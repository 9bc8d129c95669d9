// SPDX-License-Identifier: GPL-3.0-or-later
// The designer as a program: application, look, recovery of lost work, and one window that is never empty.
#pragma once

#include "core/design/design.h"

#include <string>
#include <vector>

namespace pipewright {

/// Opens each file in a window of its own, or without any the file of the last session, or the finished example.
/// Returns the exit code. Needs a screen (or QT_QPA_PLATFORM=offscreen).
int runDesigner(int argc, char** argv, const std::vector<std::string>& files);

/// What is shown when nothing was asked for: a model of the presets on four devices under ZB-H1, or, when
/// there are no presets, the same schedule with costs given by hand.
Design exampleDesign();

} // namespace pipewright
