// SPDX-License-Identifier: GPL-3.0-or-later
// A look at the user's own module before anything runs (pipewright/look.py): parameters that several layers share,
// tuples between layers, frozen parameters, backwards that cannot be split, random numbers. `run`, `profile` and
// `experiment` get the same from their own processes.
#pragma once

#include "executor/torch/modulefacts.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

struct ModuleLookOptions {
    std::string module; ///< FILE.py:build, which returns layers
    std::string python = "python3";
    std::string device = "auto"; ///< auto, host or cuda
    std::uint64_t seed = 1;
    const std::atomic<bool>* cancel = nullptr;
};

struct ModuleLook {
    std::string torch;               ///< version of PyTorch
    std::vector<std::string> layers; ///< their classes
    std::vector<ModuleFact> facts;
    bool cancelled = false; ///< then the rest says nothing
};

/// Passes two rows of batch(0) through the layers, in a process of its own. Throws Error with what is wrong with the
/// module and in which layer.
ModuleLook lookAtModule(const ModuleLookOptions& options);

} // namespace pipewright
