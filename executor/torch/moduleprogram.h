// SPDX-License-Identifier: GPL-3.0-or-later
// One of the package's programs that work on a user's module in a process of their own (look, profile, experiment): it
// is given a job as a file, and reports in lines of JSON until it is done.
#pragma once

#include "core/json/jsonvalue.h"

#include <atomic>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pipewright {

struct ModuleProgram {
    std::string name;   ///< of the Python module, such as "pipewright.look"
    std::string where;  ///< what errors are about that name no place themselves
    std::string python; ///< the interpreter
    JsonValue job;
    const std::atomic<bool>* cancel = nullptr;

    /// Runs it and calls `take` with every report. Returns false when it was cancelled. Throws Error for what the
    /// program refuses, for a line that is no report, and when it ends before it is done.
    bool run(const std::function<void(const nlohmann::json& report)>& take) const;
};

} // namespace pipewright
