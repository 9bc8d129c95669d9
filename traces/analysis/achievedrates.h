// SPDX-License-Identifier: GPL-3.0-or-later
// Achieved bandwidth and FLOP rates against the hardware's ceiling: for a measured step from its design (FLOPs of a
// block, peak of a device, bandwidth of a link), for an imported trace from its copies and collectives. Without a
// design the reference is the best rate in the trace.
#pragma once

#include "core/design/design.h"
#include "core/predict/timeline.h"
#include "traces/store/tracereader.h"

#include <string>
#include <vector>

namespace pipewright {

struct AchievedRate {
    std::string what;   ///< "matrix units of device 1", "link 0 to 1", "host to device, GPU 0", "allreduce, rank 0"
    bool flops = false; ///< amount counts FLOPs, not bytes
    int device = -1, peer = -1;
    std::int64_t count = 0;
    double amount = 0;    ///< total bytes or FLOPs
    Nanoseconds time = 0; ///< sum of their durations
    double best = 0;      ///< per second, of the fastest single one
    double ceiling = 0;   ///< per second; 0: unknown

    double rate() const { return time > 0 ? amount / (static_cast<double>(time) * 1e-9) : 0; }
    /// Share of the ceiling, or of the best where there is none.
    double share() const;
};

/// `what` with the devices' names as shown elsewhere: "matrix units of GPU 1", "link GPU 0 to GPU 1".
std::string nameOf(const AchievedRate& rate, const Cluster& cluster);
std::string rateText(double perSecond, bool flops); ///< "1.53 TFLOP/s", "24.1 GB/s"
/// What a share above 100 % means, as a sentence; empty where there is none.
std::string beyondCeilings(const std::vector<AchievedRate>& rates);

/// The design with the model that really ran: the trace's own design where it holds one, else the given one. Its model
/// is removed if it is a built-in one, a placeholder for designs without a named model, unless Pipewright itself
/// trained it.
Design workedDesign(const TraceReader& trace, const Design& given);

/// Matrix units of each device, by the FLOPs of its blocks (those of recomputation included), then every link that
/// carried bytes, as far as the design knows them. O(tasks).
std::vector<AchievedRate> achievedRates(const Design& design, const Program& program, const Timeline& measured);

/// Copies by direction, and collectives by kind and rank, in the stretch [from, to) of an imported trace. A
/// collective's time includes waiting for the other ranks. Throws Error.
std::vector<AchievedRate> achievedRates(const std::string& trace, Nanoseconds from, Nanoseconds to);

} // namespace pipewright
