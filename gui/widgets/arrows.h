// SPDX-License-Identifier: GPL-3.0-or-later
// Arrows over lanes, in every view alike.
#pragma once

#include <QColor>
#include <QPainterPath>
#include <QPointF>

class QPainter;

namespace pipewright {

/// Leaves to the right and enters from the left, however far apart the ends are.
QPainterPath arrowPath(QPointF from, QPointF to);
/// With a halo of the ground, which keeps the line apart from the blocks it crosses, and a dot at its tip.
void paintArrow(QPainter& painter, const QPainterPath& path, const QColor& color, QColor ground);

} // namespace pipewright
