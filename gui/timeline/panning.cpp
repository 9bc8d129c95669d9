// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/panning.h"

#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QMouseEvent>

namespace pipewright {

Panning::Panning(TimelineParts& d, QPoint from) : Gesture(d), m_from(from)
{
    d.view.viewport()->setCursor(Qt::ClosedHandCursor);
}

void Panning::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint(), moved = position - m_from;
    m_from = position;
    d.scroll.panByMouse(moved);
}

void Panning::release(const QMouseEvent&)
{
    d.view.viewport()->setCursor(Qt::ArrowCursor);
}

} // namespace pipewright
