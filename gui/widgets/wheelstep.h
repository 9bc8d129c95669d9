// SPDX-License-Identifier: GPL-3.0-or-later
// The meaning of wheel and swipe events over lanes and time, equal in all views: Ctrl zooms at the cursor, Shift
// or a sideways movement pans, else the lanes scroll.
#pragma once

#include <QWheelEvent>

#include <cmath>

namespace pipewright {

struct WheelStep {
    double zoom = 1; ///< > 1: more detail
    double pan = 0;  ///< pixels; > 0: later times come into view
    int scroll = 0;  ///< pixels; > 0: lanes from above come into view
};

/// `pitch`: pixels that a notch scrolls. Touchpads report pixels, wheels eighths of a degree; a notch is 120 of them.
inline WheelStep wheelStep(const QWheelEvent& event, double pitch)
{
    constexpr double zoomPerNotch = 1.25, panPerNotch = 90;
    const QPoint pixels = event.pixelDelta(), angle = event.angleDelta();
    const double notches = (angle.y() != 0 ? angle.y() : angle.x()) / 120.0;
    const QPoint moved = pixels.isNull() ? angle : pixels;
    WheelStep step;
    if (event.modifiers() & Qt::ControlModifier)
        step.zoom = std::pow(zoomPerNotch, notches);
    else if (event.modifiers() & Qt::ShiftModifier)
        step.pan = -notches * panPerNotch;
    else if (std::abs(moved.x()) > std::abs(moved.y()))
        step.pan = pixels.isNull() ? -angle.x() / 120.0 * panPerNotch : -pixels.x();
    else
        step.scroll = pixels.isNull() ? static_cast<int>(std::lround(notches * pitch)) : pixels.y();
    return step;
}

} // namespace pipewright
