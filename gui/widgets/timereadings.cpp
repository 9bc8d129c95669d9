// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/timereadings.h"

#include <QPainter>

namespace pipewright {
namespace {

/// A line of one pixel, in the column in which the lanes draw the same time.
void paintLine(QPainter& painter, const TimeAxis& axis, double time, const QRectF& area, const QColor& color)
{
    const int x = columns(axis, time, time).first;
    if (x >= area.left() && x < area.right())
        painter.fillRect(QRectF(x, area.top(), 1, area.height()), color);
}

} // namespace

void paintTicks(QPainter& painter, const TimeReadings& readings, const TimeAxis& axis, const QRectF& area,
                const Theme& theme)
{
    QColor line = theme.hairline;
    line.setAlphaF(line.alphaF() * 0.7f);
    for (const double tick : readings.ticks)
        paintLine(painter, axis, tick, area, line);
}

void paintReadings(QPainter& painter, const TimeReadings& readings, const TimeAxis& axis, const QRectF& area,
                   const Theme& theme)
{
    painter.save();
    painter.setClipRect(area, Qt::IntersectClip);
    if (readings.range) {
        const double from = axis.xOf(static_cast<double>(readings.range->first));
        const double to = axis.xOf(static_cast<double>(readings.range->second));
        QColor wash = theme.accent;
        wash.setAlphaF(0.10f);
        painter.fillRect(QRectF(from, area.top(), to - from, area.height()), wash);
        paintLine(painter, axis, static_cast<double>(readings.range->first), area, theme.accent);
        paintLine(painter, axis, static_cast<double>(readings.range->second), area, theme.accent);
    }
    painter.setPen(QPen(theme.text, 1, Qt::DashLine));
    for (const Nanoseconds mark : readings.marks) {
        const double x = columns(axis, static_cast<double>(mark), static_cast<double>(mark)).first + 0.5;
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    }
    if (readings.crosshair)
        paintLine(painter, axis, static_cast<double>(*readings.crosshair), area, theme.dim);
    painter.restore();
}

} // namespace pipewright
