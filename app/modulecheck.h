// SPDX-License-Identifier: GPL-3.0-or-later
// `check FILE.py:build --for torch`: what a module of the user's holds that a pipeline has to know.
#pragma once

#include "executor/torch/modulelook.h"

#include <string>

namespace pipewright::app {

/// Whether `check` was given a module rather than a design.
bool isModule(const std::string& file);

/// Prints what was found and returns the exit code; throws Error for what is wrong with the interpreter, Finding for
/// what is wrong with the module.
int checkModule(ModuleLookOptions options, bool json);

} // namespace pipewright::app
