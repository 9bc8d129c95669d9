// SPDX-License-Identifier: GPL-3.0-or-later
// Arrows over lanes, drawn the same in every view.
#pragma once

#include <QColor>
#include <QPainterPath>
#include <QPointF>

class QPainter;

namespace pipewright {

/// Leaves to the right and enters from the left, however far apart the ends are.
QPainterPath arrowPath(QPointF from, QPointF to);
/// With an outline in the background colour, to separate it from blocks, and a dot at its tip.
void paintArrow(QPainter& painter, const QPainterPath& path, const QColor& color, QColor ground);

} // namespace pipewright
