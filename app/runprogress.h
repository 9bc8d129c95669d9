// SPDX-License-Identifier: GPL-3.0-or-later
// The progress of a run as `run` shows it, whatever executes it.
#pragma once

#include "app/progress.h"
#include "executor/run/run.h"

namespace pipewright::app {

void showStep(ProgressPrinter& printer, const RunProgress& now, int steps);

} // namespace pipewright::app
