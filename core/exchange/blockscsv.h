// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks and metrics as CSV, for spreadsheets and dataframes: one line per block or device, times in whole nanoseconds,
// the measured columns empty where nothing was measured.
#pragma once

#include "core/base/pieces.h"
#include "core/predict/timeline.h"

namespace pipewright {

/// Columns: block, device, op, stage, microbatch, replica, predicted start and end, measured start and end, all in ns.
void blocksCsv(const Program& program, const Timeline& predicted, const Timeline* measured, const Pieces& to);
/// Columns: timeline, device, makespan, busy, idle, span (ns), peak activations and bytes, and idle time by cause.
void metricsCsv(const Program& program, const Timeline& predicted, const Timeline* measured, const Pieces& to);

} // namespace pipewright
