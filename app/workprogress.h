// SPDX-License-Identifier: GPL-3.0-or-later
// How far work on a trace is, on standard error, and its end by Ctrl+C: a bar on a terminal, or JSON lines.
#pragma once

#include "traces/progress.h"

#include <string>

namespace pipewright::app {

class WorkProgressPrinter {
public:
    /// `choice`: "auto" (a bar on a terminal), "bar", "json" or "none"; throws Error for another. From here on
    /// the first interrupt asks the work to end, a second ends the program.
    WorkProgressPrinter(const std::string& choice, std::string title);
    ~WorkProgressPrinter(); ///< leaves a bar's line
    WorkProgress progress();
    void finish();

private:
    bool show(double fraction);

    std::string m_title;
    bool m_bar = false, m_json = false, m_drawn = false;
    int m_shown = -1; ///< percent
};

} // namespace pipewright::app
