// SPDX-License-Identifier: GPL-3.0-or-later
// How far a run is, on standard error: a bar that redraws its line on a terminal, or one JSON object per
// line for programs. Into a file or a pipe nothing is printed unless asked for.
#pragma once

#include "executor/run.h"

#include <string>

namespace pipewright::app {

class ProgressPrinter {
public:
    enum class Style { Silent, Bar, Json };

    /// `choice`: "auto" (a bar on a terminal), "bar", "json" or "none".
    ProgressPrinter(const std::string& choice, int steps);
    ~ProgressPrinter(); ///< leaves a bar's line

    void show(const RunProgress& progress);
    /// The last report: everything is done, the check after the last step included.
    void finish();

private:
    void showBar() const;
    void showJson() const;

    Style m_style;
    int m_steps;
    RunProgress m_last;
    bool m_drawn = false;
};

} // namespace pipewright::app
