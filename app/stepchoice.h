// SPDX-License-Identifier: GPL-3.0-or-later
// The step of a recording that a command uses: by number, the one of median length, or the typical one, made of the
// medians of every block.
#pragma once

#include "app/command.h"
#include "traces/analysis/calibration.h"

#include <string>

namespace pipewright::app {

struct StepChoice {
    std::string text; ///< as given; empty: "median"

    void addTo(CLI::App& command); ///< the option --step
    /// The given number; throws Error for anything other than a number, "median" or "typical".
    int number() const; ///< -1: none

    struct Chosen {
        Timeline timeline;
        int step = -1;    ///< -1: the typical one
        std::string name; ///< "step 3", "the typical step"
        Json json() const { return step < 0 ? Json("typical") : Json(step); }
    };
    /// Throws Error when the trace has no such step, or is of another program.
    Chosen of(const TraceReader& trace, const Program& program) const;
};

/// Parses "5" or "3-7", the value of `option`; throws Error for anything else.
StepRange parseStepRange(const std::string& text, const std::string& option);

Json toJson(const StepLengths& lengths);
void print(const StepLengths& lengths);               ///< one line; nothing for a single step
std::string outliersText(const StepLengths& lengths); ///< "step 4 (1.8 s), step 9 (1.7 s)"

} // namespace pipewright::app
