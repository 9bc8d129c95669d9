// SPDX-License-Identifier: GPL-3.0-or-later
// A point in time as text, with as many digits as its neighbours on the axis need to differ.
#pragma once

#include "core/base/units.h"

#include <QString>

namespace pipewright {

/// As durationText(), with more digits where two times `resolution` nanoseconds apart would read the same otherwise:
/// "1.813 s", and "1.813042 s" for a resolution of a microsecond.
QString timeText(Nanoseconds time, double resolution);

} // namespace pipewright
