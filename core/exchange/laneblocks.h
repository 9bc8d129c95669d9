// SPDX-License-Identifier: GPL-3.0-or-later
// The shapes of a lane in a timeline picture, in pixels: blocks wide enough to be drawn alone, runs of narrower ones,
// and idle gaps. Pure geometry. O(tasks log tasks).
#pragma once

#include "core/predict/timeline.h"

#include <vector>

namespace pipewright {

/// Time to pixels: x = left + (time - begin) * pixelsPerNanosecond.
struct TimeScale {
    double left = 0, width = 1;
    Nanoseconds begin = 0, end = 1;
    double x(Nanoseconds time) const
    {
        return left + static_cast<double>(time - begin) / static_cast<double>(end - begin) * width;
    }
};

struct LaneShape {
    double from = 0, to = 0; ///< pixels
    TaskId task = none;      ///< none: a run of blocks narrower than a pixel
    int colour = opCount;    ///< the Op, as a number; opCount: a reduction
    bool joined = false;     ///< overlaps with the next shape: each is drawn in half of the time

    bool isReduction() const { return colour == opCount; }
    Op op() const { return static_cast<Op>(colour); }
};

struct LaneShapes {
    std::vector<LaneShape> shapes;               ///< by time
    std::vector<std::pair<double, double>> idle; ///< gaps of at least three pixels, in pixels
};

/// Lanes of the first `devices` devices. Tasks that were not run or took no time are left out; transfers are not shown.
std::vector<LaneShapes> lanesOf(const Program& program, const Timeline& timeline, const TimeScale& scale, int devices);

} // namespace pipewright
