// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/design/design.h"

#include <string>

namespace pipewright::app {

/// What a model is trained on when nobody says: text that every build from source has, the program's own; else, and
/// for classifiers, nothing, which stands for what is built in.
std::string defaultData(const Design& design);

} // namespace pipewright::app
