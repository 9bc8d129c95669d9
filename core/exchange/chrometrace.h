// SPDX-License-Identifier: GPL-3.0-or-later
// A Timeline as Chrome trace JSON, for ui.perfetto.dev and chrome://tracing: one process per device with a
// thread for computations and threads for the transfers it receives, arrows from the computation that makes a
// value through its transfer to the computation that needs it, and a counter of live bytes. Times are whole
// nanoseconds written as microseconds with three decimals, so nothing is rounded. O(tasks + memory samples).
#pragma once

#include "core/base/pieces.h"
#include "core/predict/timeline.h"
#include "core/program/program.h"

#include <string>

namespace pipewright {

/// `name` is the trace's title. Tasks that were not run are left out. With `measured` each device has a second process
/// "device 0, measured" right below the first. `curve` gives the memory curves that `timeline` does not hold; each is
/// freed once it is written.
void chromeTrace(const Program& program, const Timeline& timeline, const std::string& name, const Timeline* measured,
                 const Pieces& to, const CurveOf& curve = {});

} // namespace pipewright
