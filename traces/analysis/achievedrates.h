// SPDX-License-Identifier: GPL-3.0-or-later
// Achieved bandwidth and FLOP rates against the hardware's ceiling: for a measured step from its design (FLOPs of a
// block, peak of a device, bandwidth of a link), for an imported trace from its copies and collectives. Without a
// design the best rate in the trace is the reference.
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
    double amount = 0;    ///< bytes or FLOPs of all of them
    Nanoseconds time = 0; ///< sum of their durations
    double best = 0;      ///< per second, of the fastest
    double ceiling = 0;   ///< per second; 0: not known

    double rate() const { return time > 0 ? amount / (static_cast<double>(time) * 1e-9) : 0; }
    /// Share of the ceiling, or of the best where there is none.
    double share() const;
};

/// `what` with the devices' names as shown elsewhere: "matrix units of GPU 1", "link GPU 0 to GPU 1".
std::string nameOf(const AchievedRate& rate, const Cluster& cluster);
std::string rateText(double perSecond, bool flops); ///< "1.53 TFLOP/s", "24.1 GB/s"

/// The design whose model was at work: the trace's own where it holds one, else the given one, without its model when
/// that is a built-in one, which stands where no model was named and which no other tool trains.
Design workedDesign(const TraceReader& trace, const Design& given);

/// Matrix units of each device in model FLOPs (recomputation counts as time only), then every link that carried bytes,
/// as far as the design knows them. O(tasks).
std::vector<AchievedRate> achievedRates(const Design& design, const Program& program, const Timeline& measured);

/// Copies by direction, and collectives by kind and rank, of the stretch [from, to) of an imported trace; a
/// collective's time counts its waiting for the others. Throws Error.
std::vector<AchievedRate> achievedRates(const std::string& trace, Nanoseconds from, Nanoseconds to);

} // namespace pipewright
