// SPDX-License-Identifier: GPL-3.0-or-later
// A look at the user's own module before anything runs (pipewright/look.py): parameters that several layers share,
// tuples between layers, frozen parameters, backwards that cannot be split, random numbers. `run`, `profile` and
// `experiment` get the same from their own processes.
#pragma once

#include "core/base/diagnostic.h"

#include <nlohmann/json_fwd.hpp>

#include <atomic>
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

struct ModuleFact {
    std::string kind; ///< shared, tuples, frozen, backward, random; or plain, when there is nothing of these
    std::string what; ///< a line for the user
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

/// What a report of any of the package's programs says of the module; empty if nothing. Throws what nlohmann's JSON
/// throws.
std::vector<ModuleFact> factsOfReport(const nlohmann::json& report);
/// As notes, for programs that do more than look; none for a plain module.
Diagnostics notesOf(const std::vector<ModuleFact>& facts);

/// A number of a report, which writes "nan", "inf" and "-inf" for what JSON has no word for; NaN for anything else.
double reportedNumber(const nlohmann::json& value);

} // namespace pipewright
