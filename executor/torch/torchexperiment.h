// SPDX-License-Identifier: GPL-3.0-or-later
// An experiment on the user's own module: designs trained by PyTorch on the same rows from the same weights, all stages
// in one process (pipewright/experiment.py). The results have the same form as those of the built-in models, and also
// say how far predicted weights were from the weights that followed.
#pragma once

#include "executor/experiment/experiment.h"

#include <string>

namespace pipewright {

struct TorchExperimentOptions {
    int updates = 100, seeds = 1;
    std::string module; ///< FILE.py:build; the file also has data, loss and optimizer
    std::string python = "python3";
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(const ExperimentProgress&)> progress{};
    std::function<void(const ExperimentRun&)> finished{}; ///< after each run
    std::function<void(const Diagnostics&)> tell{};       ///< notes on the module, before anything is trained
};

/// Throws Error when a design cannot be run so (as torchJob() does), when its family makes fewer updates than asked
/// for, and when the process fails.
Experiment runTorchExperiment(const std::vector<Design>& designs, const TorchExperimentOptions& options);

} // namespace pipewright
