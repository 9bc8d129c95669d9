// SPDX-License-Identifier: GPL-3.0-or-later
// What a backend cannot run of a design, and what it runs otherwise than it is drawn, each with the remedy and before
// anything is allocated. `check --for` prints it and `run` asks the same, so that nothing is dropped in silence.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "executor/run/run.h"

#include <string>
#include <string_view>

namespace pipewright {

/// With what a design is to be run.
struct RunMeans {
    std::string backend = "host"; ///< as in `run --backend`
    RunOptions::Maths maths = RunOptions::Maths::Automatic;
    bool virtualClock = false;
    bool gpus = false;
    bool graphs = false; ///< blocks are to be captured as CUDA graphs
};
inline constexpr std::string_view runBackends[] = {"host", "mpi", "cuda"};
RunMeans meansOf(const RunOptions& options);
/// Whether timed blocks of an overlapped pair run their parts on two threads of their device. Elsewhere the time of one
/// block passes after that of the other, the pair's in all.
bool runsPartsOnTwoThreads(const RunMeans& means);

/// Whether blocks would be trained, and not only take their time, as far as means and model decide.
bool mayTrain(const Design& design, const RunMeans& means);

struct BackendCheck {
    bool trains = false; ///< or else the blocks are timed
    /// Errors: it does not run. Notes: it runs, but this is done otherwise than the design says.
    Diagnostics found;
};

/// For a design that checkDesign() finds nothing wrong with.
BackendCheck checkForBackend(const Design& design, const RunMeans& means);

/// What stands in the way of training this design; empty when nothing does.
Diagnostics whyNotTrainable(const Design& design);
/// That as notes of what runs instead.
Diagnostics notesOfTimes(const Diagnostics& why);

} // namespace pipewright
