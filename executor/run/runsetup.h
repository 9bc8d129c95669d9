// SPDX-License-Identifier: GPL-3.0-or-later
// Applies a run's options to a design before anything is compiled: whether it trains, on which data and devices, and
// otherwise the times of its blocks.
#pragma once

#include "executor/run/run.h"
#include "executor/runtime/backend.h"
#include "executor/training/trainingdata.h"

#include <memory>
#include <optional>
#include <string>

namespace pipewright {

/// Changes the design, and the Program compiled from it, where the devices store or compute a model differently from
/// what it says, and adds a note for each difference in memory. bf16 arithmetic is used only if all devices have it.
void fitToDevices(Design& design, Program& program, Backend& backend, Diagnostics& notes);

/// Throws Error for what this backend cannot run; the rest of what checkForBackend() finds becomes notes.
bool trainsOrThrow(const Design& design, const RunOptions& options, Diagnostics& notes);

/// Without --data, a note says which data is used.
std::unique_ptr<TrainingData> loadData(const RunOptions& options, const ModelShape& shape, int microbatches,
                                       Diagnostics& notes);

/// The bound of the gradient check for the precision in which the model is stored.
double gradientBoundOf(const RunOptions& options, const ModelShape& shape);

/// For timed and synthetic blocks.
Design scaledDesign(const Design& design, const RunOptions& options);

std::unique_ptr<Backend> backendFor(const RunOptions& options, int devices);

/// Per device, as predicted.
std::vector<Bytes> peaksOf(const Program& program);

/// Throws Error if an option needs parameters and the run does not train.
void requireParameters(const RunOptions& options, bool trains);

} // namespace pipewright
