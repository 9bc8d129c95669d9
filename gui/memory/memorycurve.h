// SPDX-License-Identifier: GPL-3.0-or-later
// One device's memory in a rectangle on a time axis: persistent bytes, the filled curve above them, a dashed outline of
// another curve, and the limit. Painted as at most a few rectangles per pixel column, because it is repainted at every
// move of a drag.
#pragma once

#include "gui/memory/stepcurve.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/timecoordinates.h"

#include <QRectF>
#include <QString>

class QPainter;

namespace pipewright {

struct MemoryOfDevice {
    QString name;
    StepCurve filled, outlined; ///< empty: none
    Bytes persistent = 0, limit = 0;
};

class MemoryCurve {
public:
    /// `top`: the bytes at the upper edge of the area.
    MemoryCurve(const TimeAxis& axis, const QRectF& area, double top) : m_axis(axis), m_area(area), m_top(top) {}
    double yOf(double bytes) const { return m_area.bottom() - bytes / m_top * m_area.height(); }
    /// Returns the number of painted rectangles, which is bounded by the number of pixel columns.
    int paint(QPainter& painter, const MemoryOfDevice& device, const Theme& theme, double scale) const;

private:
    struct Run { ///< consecutive pixel columns in which the curve covers the same rows
        double left, right, upper, lower;
    };
    std::vector<Run> runsOf(const StepCurve& curve, double scale, double thickness) const;

    TimeAxis m_axis;
    QRectF m_area;
    double m_top;
};

} // namespace pipewright
