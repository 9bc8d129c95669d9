// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/design/design.h"

#include <string>

namespace pipewright::app {

/// The default training data: the program's own text in builds from source. Otherwise, and for classifiers, it is
/// empty, which means the built-in data.
std::string defaultData(const Design& design);

} // namespace pipewright::app
