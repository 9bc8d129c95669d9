// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/gesture.h"

#include "gui/timeline/timelineviewprivate.h"

#include <QApplication>

namespace pipewright {

Gesture::Gesture(TimelineView::Private& d) : d(d), view(d.view) {}

void Gesture::cancel()
{
    d.setPlan(std::nullopt);
}

bool Gesture::isBeyondStart(QPoint pressedAt, QPoint position) const
{
    return (position - pressedAt).manhattanLength() >= QApplication::startDragDistance();
}

} // namespace pipewright
