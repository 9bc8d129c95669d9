// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/arrows.h"

#include <QPainter>
#include <QPen>

#include <algorithm>
#include <cmath>

namespace pipewright {

QPainterPath arrowPath(QPointF from, QPointF to)
{
    QPainterPath path(from);
    const double bend = std::clamp(std::abs(to.x() - from.x()) / 2, 10.0, 60.0);
    path.cubicTo(from + QPointF(bend, 0), to - QPointF(bend, 0), to);
    return path;
}

void paintArrow(QPainter& painter, const QPainterPath& path, const QColor& color, QColor ground)
{
    ground.setAlphaF(0.75f);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(ground, 4));
    painter.drawPath(path);
    painter.setPen(QPen(color, 1.5));
    painter.drawPath(path);
    painter.setPen(QPen(ground, 1));
    painter.setBrush(color);
    painter.drawEllipse(path.currentPosition(), 3.5, 3.5);
}

} // namespace pipewright
