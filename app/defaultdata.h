// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/design/design.h"

#include <string>

namespace pipewright::app {

/// The default training data: in builds from source the program's own text; else, and for classifiers, empty, which
/// means the built-in data.
std::string defaultData(const Design& design);

} // namespace pipewright::app
