// SPDX-License-Identifier: GPL-3.0-or-later
// Time <-> pixels, as pure functions. A TimeAxis says which time lies at a plot's left edge and how much time one pixel
// shows; lanes, memory and bubbles compute x with the same axis and so align to the pixel. Times become doubles only
// relative to the axis' start; a double holds whole nanoseconds exactly for 104 days, longer than any duration that
// units.h reads.
#pragma once

#include "core/base/units.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipewright {

struct TimeAxis {
    double start = 0;         ///< nanoseconds at the left edge of the plot; need not be whole
    double nsPerPixel = 1000; ///< > 0
    int left = 0;             ///< x of the plot's first pixel
    int width = 1;            ///< pixels of the plot, at least 1

    double xOf(double time) const { return left + (time - start) / nsPerPixel; }
    double timeAt(double x) const { return start + (x - left) * nsPerPixel; }
    double end() const { return start + width * nsPerPixel; }
    int right() const { return left + width; } ///< first pixel beyond the plot
    bool operator==(const TimeAxis&) const = default;
};

/// The finest zoom: a tenth of a nanosecond per pixel. Beyond it nothing more can be seen.
inline constexpr double finestNsPerPixel = 0.1;

/// The axis that shows [from, to] with `marginPixels` free at either side. An empty range gets 1 ns.
inline TimeAxis fitted(TimeAxis axis, double from, double to, int marginPixels = 0)
{
    const double usable = std::max(1, axis.width - 2 * marginPixels);
    axis.nsPerPixel = std::max(finestNsPerPixel, std::max(1.0, to - from) / usable);
    axis.start = from - marginPixels * axis.nsPerPixel;
    return axis;
}

/// Keeps the view over [0, total]: no zooming out beyond a fitted whole, no scrolling past either end by more than the
/// margin.
inline TimeAxis clamped(TimeAxis axis, double total, int marginPixels = 0)
{
    const TimeAxis whole = fitted(axis, 0, total, marginPixels);
    if (axis.nsPerPixel >= whole.nsPerPixel)
        return whole; // exactly, so that "shows everything" is a comparison
    axis.nsPerPixel = std::max(axis.nsPerPixel, finestNsPerPixel);
    const double margin = marginPixels * axis.nsPerPixel;
    const double last = std::max(-margin, total + margin - axis.width * axis.nsPerPixel);
    axis.start = std::clamp(axis.start, -margin, last);
    return axis;
}

/// factor > 1 shows more detail. The time under `anchorX` stays under it.
inline TimeAxis zoomed(TimeAxis axis, double factor, double anchorX)
{
    const double anchor = axis.timeAt(anchorX);
    axis.nsPerPixel = std::max(finestNsPerPixel, axis.nsPerPixel / factor);
    axis.start = anchor - (anchorX - axis.left) * axis.nsPerPixel;
    return axis;
}

/// Positive: later times come into view.
inline TimeAxis panned(TimeAxis axis, double pixels)
{
    axis.start += pixels * axis.nsPerPixel;
    return axis;
}

/// Distance of ruler ticks: the smallest of 1, 2, 5 x 10^n nanoseconds that is at least `minPixels` wide.
inline double tickStep(const TimeAxis& axis, double minPixels)
{
    const double least = std::max(1.0, axis.nsPerPixel * minPixels);
    const double decade = std::pow(10.0, std::floor(std::log10(least)));
    for (const double mantissa : {1.0, 2.0, 5.0}) {
        // The tolerance keeps 1000 ns at exactly 1000 ns although log10 is not exact.
        if (mantissa * decade >= least * (1 - 1e-9))
            return mantissa * decade;
    }
    return 10 * decade;
}

/// The pixel columns [first, last) that [start, end) covers on the axis' grid of `scale` device pixels per pixel, in
/// device pixels; at least one column, so that nothing vanishes. Neighbouring intervals that share a time share the
/// column boundary.
///
/// Called for every block of every frame, so it avoids std::floor, which is a library call on older processors.
inline std::pair<int, int> columns(const TimeAxis& axis, double start, double end, double scale = 1)
{
    const auto round = [scale](double x) {
        const double near = std::clamp(x * scale + 0.5, -1e9, 1e9);
        const int towardsZero = static_cast<int>(near);
        return towardsZero - (near < towardsZero ? 1 : 0);
    };
    const int first = round(axis.xOf(start));
    return {first, std::max(first + 1, round(axis.xOf(end)))};
}

} // namespace pipewright
