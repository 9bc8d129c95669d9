// SPDX-License-Identifier: GPL-3.0-or-later
// How fast a run moved bytes and multiplied matrices, against what its hardware could do: of a measured step by its
// design (which knows the FLOPs of a block, the peak of a device and the bandwidth of a link), of another tool's trace
// by what it says of copies and collectives. A ceiling is the design's number; without a design the best that the trace
// shows stands in for it.
#pragma once

#include "core/design/design.h"
#include "core/predict/timeline.h"

#include <string>
#include <vector>

namespace pipewright {

struct AchievedRate {
    std::string what;   ///< "matrix units of device 1", "link 0 to 1", "host to device, GPU 0", "allreduce, rank 0"
    bool flops = false; ///< amount counts FLOPs, not bytes
    int device = -1, peer = -1;
    std::int64_t count = 0;
    double amount = 0;    ///< bytes or FLOPs of all of them
    Nanoseconds time = 0; ///< in which they ran, each for itself
    double best = 0;      ///< per second, of the fastest
    double ceiling = 0;   ///< per second; 0: not known

    double rate() const { return time > 0 ? amount / (static_cast<double>(time) * 1e-9) : 0; }
    /// Of the ceiling, or of the best where there is none.
    double share() const;
};

std::string rateText(double perSecond, bool flops); ///< "1.53 TFLOP/s", "24.1 GB/s"

/// Matrix units of each device (model FLOPs: recomputation is time and no work), then every link that carried bytes.
/// Nothing for what the design does not know. O(tasks).
std::vector<AchievedRate> achievedRates(const Design& design, const Program& program, const Timeline& measured);

/// Copies by direction, and collectives by kind and rank, of the stretch [from, to) of an imported trace; a
/// collective's time counts its waiting for the others. Throws Error.
std::vector<AchievedRate> achievedRates(const std::string& trace, Nanoseconds from, Nanoseconds to);

} // namespace pipewright
