// SPDX-License-Identifier: GPL-3.0-or-later
// What a backend cannot run of a design, and what it runs differently from the design, each with the remedy and before
// anything is allocated. `check --for` prints it and `run` makes the same check, so that no part of a design is ignored
// silently.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "executor/run/run.h"

#include <string>
#include <string_view>

namespace pipewright {

/// The backend and options that a design is to be run with.
struct RunMeans {
    std::string backend = "host"; ///< as in `run --backend`
    RunOptions::Maths maths = RunOptions::Maths::Automatic;
    bool virtualClock = false;
    bool gpus = false;
    bool graphs = false; ///< blocks are to be captured as CUDA graphs
};
inline constexpr std::string_view runBackends[] = {"host", "mpi", "cuda"};
RunMeans meansOf(const RunOptions& options);
/// Whether timed blocks of an overlapped pair run their parts on two threads of their device. Otherwise the two blocks
/// run one after the other and together take the pair's time.
bool runsPartsOnTwoThreads(const RunMeans& means);

/// Whether blocks would be trained rather than timed, judging by the options and the model alone.
bool mayTrain(const Design& design, const RunMeans& means);

struct BackendCheck {
    bool trains = false; ///< false: the blocks are timed
    /// Errors: the design does not run. Notes: it runs, but differently from what the design says.
    Diagnostics found;
};

/// For a design that checkDesign() finds nothing wrong with.
BackendCheck checkForBackend(const Design& design, const RunMeans& means);

/// Why this design cannot be trained; empty when it can.
Diagnostics whyNotTrainable(const Design& design);
/// The same reasons as notes that say what runs instead.
Diagnostics notesOfTimes(const Diagnostics& why);

} // namespace pipewright
