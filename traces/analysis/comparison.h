// SPDX-License-Identifier: GPL-3.0-or-later
// Prediction against measurement of the same Program: differences of every block and their summary.
#pragma once

#include "core/predict/timeline.h"

#include <optional>
#include <vector>

namespace pipewright {

struct Quantiles {
    double median = 0, p95 = 0;
};

/// Errors are |predicted - measured| relative to the measured value (signed, predicted - measured, for
/// makespan, busy and peak); start errors are relative to the measured makespan.
struct Comparison {
    struct Device {
        Nanoseconds predictedBusy = 0, measuredBusy = 0;
        double busyError = 0;
        Bytes predictedPeak = 0;
        std::optional<Bytes> measuredPeak; ///< unset: memory was not recorded
        std::optional<double> peakError;   ///< likewise
    };
    struct BlockError { ///< one compute block, for tables and heat maps
        TaskId task = none;
        double startError = 0;
        double durationError = 0;
        Nanoseconds contribution = 0; ///< measured minus predicted duration
    };
    Nanoseconds predictedMakespan = 0, measuredMakespan = 0;
    double makespanError = 0;
    std::vector<Device> devices;
    std::int64_t matched = 0;   ///< compute blocks with both times
    std::int64_t unmatched = 0; ///< compute blocks that were not measured
    Quantiles startError, durationError;
    std::vector<BlockError> blocks; ///< largest |contribution| first
};

/// `measuredPeaks` per device, from the trace. A device that ran but has 0 bytes, or has no entry, was not recorded.
Comparison compare(const Program& program, const Timeline& predicted, const Timeline& measured,
                   const std::vector<Bytes>& measuredPeaks);
/// For designs with groups: sets the predicted peaks per device. `peaks`: of each group's fullest member, whose memory
/// a trace records; the groups' Program has only estimates.
void takePredictedPeaks(Comparison& comparison, const std::vector<Bytes>& peaks);

} // namespace pipewright
