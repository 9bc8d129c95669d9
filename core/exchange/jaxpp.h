// SPDX-License-Identifier: GPL-3.0-or-later
// A JaxPP schedule class as a Python file: a subclass of BaseSchedule whose tasks() lists, per actor, the
// tasks of this design in their order. JaxPP infers the transfers itself.
#pragma once

#include "core/exchange/exportedtext.h"

namespace pipewright {

/// The class is named after the design ("zb-h1 on 4" gives PipewrightZbH1On4). An overlapped pair becomes a FusedTask.
/// JaxPP differs from the design in two ways, which warnings explain: it runs I and W of stage 0 as one task and
/// rejects a list that separates them, so I is written next to its W (v-half); and it splits all backwards or none, so
/// in a design with an I every B becomes two tasks (dualpipe-v). Throws Error when the schedule cannot run.
ExportedText jaxppSchedule(const Design& design);

} // namespace pipewright
