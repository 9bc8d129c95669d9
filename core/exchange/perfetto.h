// SPDX-License-Identifier: GPL-3.0-or-later
// A prediction, and optionally a measurement of the same Program, as a Perfetto trace (protobuf) for ui.perfetto.dev: a
// process per device with sibling tracks "predicted" and "measured", tracks for the transfers it receives, arrows from
// the computation that makes a value through its transfer to the one that needs it, and counters of live bytes. O(tasks
// log tasks), some 30 bytes of memory per task.
#pragma once

#include "core/base/pieces.h"
#include "core/predict/timeline.h"

namespace pipewright {

/// Writes the file's bytes to `to`. `measured` may be null. Tasks that were not run are left out. `curve` gives the
/// memory curves that the predicted timeline does not hold; each is freed once it is written.
void perfettoTrace(const Program& program, const Timeline& predicted, const Timeline* measured, const Pieces& to,
                   const CurveOf& curve = {});

} // namespace pipewright
