// SPDX-License-Identifier: GPL-3.0-or-later
// What a run's options make of a design before anything is compiled: whether it trains, on which data and devices, and
// with which times its blocks are filled otherwise.
#pragma once

#include "executor/run/run.h"
#include "executor/runtime/backend.h"
#include "executor/training/trainingdata.h"

#include <memory>
#include <optional>
#include <string>

namespace pipewright {

/// What the devices keep and work in otherwise than the model says: the design, and the Program compiled of it, become
/// what they do, and a note says each. Devices of both kinds work as those that can do less.
void fitToDevices(Design& design, Program& program, Backend& backend, Diagnostics& notes);

/// Throws Error for what this backend cannot run; the rest of what checkForBackend() finds becomes notes.
bool trainsOrThrow(const Design& design, const RunOptions& options, Diagnostics& notes);

/// Without --data a note says what it is trained on.
std::unique_ptr<TrainingData> loadData(const RunOptions& options, const ModelShape& shape, int microbatches,
                                       Diagnostics& notes);

/// Of gradients: products in another order differ by what the precision of the values lets them.
double gradientBoundOf(const RunOptions& options, const ModelShape& shape);

/// For timed and synthetic blocks.
Design scaledDesign(const Design& design, const RunOptions& options);

std::unique_ptr<Backend> backendFor(const RunOptions& options, int devices);

/// Per device, as predicted.
std::vector<Bytes> peaksOf(const Program& program);

/// Throws Error where an option is about parameters, and there are none, or in pieces.
void requireParameters(const RunOptions& options, bool trains);

} // namespace pipewright
