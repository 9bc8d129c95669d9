// SPDX-License-Identifier: GPL-3.0-or-later
// How long the calling thread could have run and had no processor core, because other threads or programs had them.
// What is measured meanwhile comes out too long, and no record of the run itself shows it.
#pragma once

#include "core/base/units.h"

namespace pipewright {

/// Nanoseconds since the thread began, as the kernel counts them (/proc/thread-self/schedstat); -1 where it does not.
Nanoseconds waitedForCore();

} // namespace pipewright
