// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/picturememory.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr double limitInSight = 3; // a limit above this multiple of the highest peak is not drawn, only stated in words

// The curve as steps, at most two points per pixel: in each pixel the highest value, then the last.
std::string stepPath(const TimeScale& scale, const std::vector<MemorySample>& samples, const Rectangle& area,
                     double top, Nanoseconds end, bool closed)
{
    std::string path;
    const auto y = [&](Bytes bytes) { return area.bottom() - static_cast<double>(bytes) / top * area.height; };
    const auto to = [&path](char command, double value) {
        path += command;
        appendNumber(path, value);
    };
    bool first = true;
    for (std::size_t i = 0; i < samples.size();) {
        const double x = scale.x(samples[i].time);
        Bytes highest = samples[i].bytes, last = samples[i].bytes;
        std::size_t next = i + 1;
        for (; next < samples.size() && scale.x(samples[next].time) - x < 0.75; ++next) {
            highest = std::max(highest, samples[next].bytes);
            last = samples[next].bytes;
        }
        if (first) {
            appendPoint(path, 'M', x, closed ? area.bottom() : y(highest));
            first = false;
        }
        to('H', x);
        to('V', y(highest));
        if (last != highest) {
            to('H', x + 0.5);
            to('V', y(last));
        }
        i = next;
    }
    if (first)
        return path;
    to('H', scale.x(end));
    if (closed) {
        to('V', area.bottom());
        path += 'z';
    }
    return path;
}

// The round number of bytes that the axis names, below nine tenths of its top: 1, 2 or 5 times a power of ten, times a
// power of 1024; 0: none fits.
Bytes markOf(double top)
{
    Bytes unit = 1;
    while (static_cast<double>(unit) * 1024 <= 0.9 * top)
        unit *= 1024;
    for (const int factor : {500, 200, 100, 50, 20, 10, 5, 2, 1})
        if (static_cast<double>(unit) * factor <= 0.9 * top)
            return unit * factor;
    return 0;
}

struct MemoryScale {
    double top = 1; // bytes at the upper edge
    bool limitFits = false;
};

// One scale for all devices of both sides, so that heights compare.
MemoryScale scaleOf(const PictureScene& scene, const PictureBand& band)
{
    Bytes highest = 1, limit = 0;
    for (const PictureView& view : band.views)
        for (int device = 0; device < band.devices; ++device) {
            highest = std::max(highest, view.program().devices[device].peakBytes);
            if (view.measured && device < std::ssize(view.shown().memory))
                for (const MemorySample& sample : view.shown().memory[device])
                    highest = std::max(highest, sample.bytes);
            limit = std::max(limit, scene.limitOf(view, device));
        }
    const bool fits = limit > 0 && static_cast<double>(limit) <= limitInSight * static_cast<double>(highest);
    return {1.06 * static_cast<double>(fits ? std::max(limit, highest) : highest), fits};
}

void drawCurves(const PictureScene& scene, SvgWriter& svg, const PictureView& view, std::size_t device,
                const Rectangle& area, const MemoryScale& scale)
{
    const PictureTheme& theme = scene.theme;
    const Timeline& predicted = view.panel->prediction->timeline;
    const Timeline& shown = view.shown();
    const Nanoseconds end = endOf(shown);
    const bool recorded = device < shown.memory.size() && !shown.memory[device].empty();
    if (recorded) {
        svg.filledPath(stepPath(view.scale, shown.memory[device], area, scale.top, end, true), theme.accent, 0.22);
        // A measurement does not record which bytes are persistent.
        const Bytes kept = view.measured ? 0 : view.program().devices[device].persistentBytes;
        const double persistent = static_cast<double>(kept) / scale.top * area.height;
        if (persistent >= 1)
            svg.fill({area.x, area.bottom() - persistent, view.scale.x(end) - area.x, persistent}, theme.persistent, 0,
                     0.8);
        svg.strokedPath(stepPath(view.scale, shown.memory[device], area, scale.top, end, false), theme.accent, 1.3);
    } else if (view.measured) {
        svg.text(area.right() - 4, area.y + 11, "not recorded", {9, theme.dim, false, false, Anchor::End});
    }
    if (view.outlined && device < predicted.memory.size())
        svg.strokedPath(stepPath(view.scale, predicted.memory[device], area, scale.top, endOf(predicted), false),
                        theme.text, 1, 1, "3 2");
}

} // namespace

void drawMemory(const PictureScene& scene, SvgWriter& svg, const PictureBand& band, const PictureView& view)
{
    const PictureTheme& theme = scene.theme;
    const MemoryScale scale = scaleOf(scene, band);
    const Bytes mark = markOf(scale.top);
    for (int device = 0; device < band.devices; ++device) {
        const double rowTop = band.memoryTop + device * band.memoryHeight;
        const double inset = band.memoryHeight >= 40 ? 6 : band.memoryHeight >= 20 ? 3 : 1;
        const Rectangle area{view.scale.left, rowTop + inset, view.scale.width, band.memoryHeight - 2 * inset};
        const auto yOf = [&](Bytes bytes) {
            return area.bottom() - static_cast<double>(bytes) / scale.top * area.height;
        };
        svg.fill(area, theme.panel, 2);
        drawCurves(scene, svg, view, device, area, scale);
        const Bytes limit = scene.limitOf(view, device);
        if (scale.limitFits && limit > 0)
            svg.line(area.x, yOf(limit), area.right(), yOf(limit), theme.bad, 1, "4 3");
        if (scene.options.axes) {
            svg.line(area.x, area.bottom(), area.right(), area.bottom(), theme.hairline, 0.6);
            if (mark > 0 && area.height >= 36) {
                svg.line(area.x, yOf(mark), area.right(), yOf(mark), theme.hairline, 0.6, "1 2");
                if (!scene.compact && &view == &band.views.front()) {
                    svg.text(area.x - 5, yOf(mark) + 3, formatSize(mark), {9, theme.dim, true, false, Anchor::End});
                } else { // no room beside the plot: inside, with a background that keeps the text readable
                    svg.fill({area.x + 1, yOf(mark) - 11, widthOf(formatSize(mark), 9, true) + 4, 11}, theme.panel, 2,
                             0.8);
                    svg.text(area.x + 3, yOf(mark) - 2, formatSize(mark), {9, theme.dim, true});
                }
            }
        }
    }
}

} // namespace pipewright
