// SPDX-License-Identifier: GPL-3.0-or-later
// How far an experiment is, on standard error: a bar on a terminal; for programs a JSON line per update,
// {"progress", "run", "runs", "design", "seed", "update", "updates", "loss", "eta_ns"}, and one per finished run,
// {"finished": what --json says of it, without the losses}.
#pragma once

#include "core/base/units.h"
#include "executor/experiment.h"

#include <string>

namespace pipewright::app {

class ExperimentProgressPrinter {
public:
    /// `choice`: "auto" (a bar on a terminal), "bar", "json" or "none". Throws Error for another.
    explicit ExperimentProgressPrinter(const std::string& choice);
    ~ExperimentProgressPrinter(); ///< leaves a bar's line

    void show(const ExperimentProgress& progress);
    void show(const ExperimentRun& finished);

private:
    bool m_json = false, m_bar = false, m_drawn = false;
    Nanoseconds m_start;
};

} // namespace pipewright::app
