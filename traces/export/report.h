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

/// A recording of a design, one of its steps laid over the prediction. Throws Error.
std::string runReport(const Design& design, const Prediction& prediction, const TraceReader& trace,
                      const std::string& tracePath, const MeasuredStep& step, const std::vector<TraceNote>& notes);

/// A stretch of another tool's trace; `store` is the imported file, for what only its tables hold. Throws Error.
std::string activityReport(const StoredActivities& trace, const std::string& store, const TraceStep& stretch,
                           const std::vector<TraceNote>& notes);

} // namespace pipewright
