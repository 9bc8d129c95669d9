// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/gesture.h"

#include "gui/timeline/timelineparts.h"

#include <QApplication>

namespace pipewright {

void Gesture::cancel()
{
    d.drop.clear();
}

bool Gesture::isBeyondStart(QPoint pressedAt, QPoint position)
{
    return (position - pressedAt).manhattanLength() >= QApplication::startDragDistance();
}

} // namespace pipewright
