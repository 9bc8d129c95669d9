// SPDX-License-Identifier: GPL-3.0-or-later
// The metrics for comparing schedules. All definitions of the bubble are reported by name, because papers define it
// differently.
#pragma once

#include "core/predict/timeline.h"

#include <vector>

namespace pipewright {

struct DeviceMetrics {
    Nanoseconds busy = 0; ///< time in compute blocks (F, B, I, W, R) and updates
    Nanoseconds idle = 0; ///< makespan - busy
    Nanoseconds span = 0; ///< first compute block's start to last compute block's end
    double peakActivations = 0;
    Bytes peakBytes = 0;
};

/// A device's idle time by cause; the parts sum to idle.
struct IdleCauses {
    Nanoseconds warmUp = 0;         ///< before its first block
    Nanoseconds waitActivation = 0; ///< before an F whose input was still being computed
    Nanoseconds waitGradient = 0;   ///< before a B, I or W whose gradient was still being computed
    Nanoseconds transfer = 0;       ///< the input was computed and in transfer
    Nanoseconds copies = 0;         ///< for gathers and sums with copies that are only counted (ZeRO)
    Nanoseconds coolDown = 0;       ///< after its last block
    Nanoseconds host = 0;           ///< all inputs had arrived, but the host had not launched it yet (Costs::hostGaps)
    Nanoseconds other = 0;          ///< pins, reductions, transfers that hold up the device
    Nanoseconds sum() const
    {
        return warmUp + waitActivation + waitGradient + transfer + copies + coolDown + host + other;
    }
};

struct Metrics {
    Nanoseconds makespan = 0; ///< last end of all tasks minus first start
    Nanoseconds span = 0;     ///< largest per-device span
    Nanoseconds ideal = 0;    ///< largest per-device compute time: the span without any bubble
    double rateMakespan = 0;  ///< idle / (devices x makespan): the devices' idle time, in which updates are work
    double rateSpan = 0;      ///< idle share of the longest span: (span - its device's work) / span
    double ratePapers = 0;    ///< (span - ideal) / span, as the zero-bubble papers write it: the same on even stages
    double ratioIdeal = 0;    ///< (makespan - ideal) / ideal, Megatron's bubble / work
    std::vector<DeviceMetrics> devices;
    std::vector<IdleCauses> idleCauses;
};

/// Works for predictions and measurements alike; tasks that were not run count as absent. O(tasks).
Metrics measure(const Program& program, const Timeline& timeline);

} // namespace pipewright
