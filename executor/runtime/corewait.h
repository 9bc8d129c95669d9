// SPDX-License-Identifier: GPL-3.0-or-later
// How long the calling thread was ready to run but had no processor core, because other threads or programs used them.
// Such waits lengthen measured times, and the run's own records do not show them.
#pragma once

#include "core/base/units.h"

namespace pipewright {

/// Nanoseconds since the thread began, as the kernel counts them (/proc/thread-self/schedstat); -1 where it does not.
Nanoseconds waitedForCore();

} // namespace pipewright
