// SPDX-License-Identifier: GPL-3.0-or-later
// What a run's options make of a design before anything is compiled: whether it trains, on which data and devices, and
// with which times its blocks are filled otherwise.
#pragma once

#include "executor/run/run.h"
#include "executor/runtime/backend.h"
#include "executor/training/trainingdata.h"

#include <memory>

namespace pipewright {

/// Throws Error for what this backend cannot run; the rest of what checkForBackend() finds becomes notes.
bool trainsOrThrow(const Design& design, const RunOptions& options, Diagnostics& notes);

/// Without --data a note says what it is trained on.
std::unique_ptr<TrainingData> loadData(const RunOptions& options, const ModelShape& shape, Diagnostics& notes);

/// For timed and synthetic blocks.
Design scaledDesign(const Design& design, const RunOptions& options);

std::unique_ptr<Backend> backendFor(const RunOptions& options, int devices);

} // namespace pipewright
