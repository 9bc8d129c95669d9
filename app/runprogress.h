// SPDX-License-Identifier: GPL-3.0-or-later
// The progress of a run as `run` shows it, with any backend.
#pragma once

#include "app/progress.h"
#include "executor/run/run.h"

namespace pipewright::app {

/// Prints the last step's time, the first and the last loss, and that the machine was busy, where these are known.
void printLastStep(const RunResult& result);

/// Prints a line about the trace.
void printTrace(const RunResult& result);

/// Prints notes, and why the run ended early, on standard error; returns the exit code.
int endRun(const RunResult& result, const std::string& trace, int steps);

void showStep(ProgressPrinter& printer, const RunProgress& now, int steps);

} // namespace pipewright::app
