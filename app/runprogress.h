// SPDX-License-Identifier: GPL-3.0-or-later
// The progress of a run as `run` shows it, whatever executes it.
#pragma once

#include "app/progress.h"
#include "executor/run/run.h"

namespace pipewright::app {

/// The last step's time, and the loss at first and at last where there is one.
void printLastStep(const RunResult& result);

/// What is known of the trace, in a line.
void printTrace(const RunResult& result);

/// Notes and what ended it early on standard error; returns the exit code.
int endRun(const RunResult& result, const std::string& trace, int steps);

void showStep(ProgressPrinter& printer, const RunProgress& now, int steps);

} // namespace pipewright::app
