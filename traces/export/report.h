// SPDX-License-Identifier: GPL-3.0-or-later
// A trace as a report: one HTML page with pictures, numbers, causes and the user's notes.
#pragma once

#include "core/predict/predict.h"
#include "traces/analysis/devicetime.h"
#include "traces/analysis/stepvariation.h"
#include "traces/store/activitystore.h"
#include "traces/store/notes.h"

#include <string>

namespace pipewright {

struct MeasuredStep {
    const Timeline& timeline;
    std::string name; ///< "step 3"
    int number = -1;  ///< the step whose notes are included; -1: none
};

/// The report on a recorded run of a design: one of its steps, compared with the prediction. Throws Error.
std::string runReport(const Design& design, const Prediction& prediction, const TraceReader& trace,
                      const std::string& tracePath, const MeasuredStep& step, const std::vector<TraceNote>& notes);

/// The report on a stretch of another tool's trace. `store`: the imported file, for data that only its tables have.
/// Throws Error.
std::string activityReport(const StoredActivities& trace, const std::string& store, const TraceStep& stretch,
                           const std::vector<TraceNote>& notes);

} // namespace pipewright
