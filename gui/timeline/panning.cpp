// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/panning.h"

#include "gui/timeline/timelineviewprivate.h"

#include <QMouseEvent>
#include <QScrollBar>

namespace pipewright {

Panning::Panning(TimelineView::Private& d, QPoint from) : Gesture(d), m_from(from)
{
    view.viewport()->setCursor(Qt::ClosedHandCursor);
}

void Panning::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint(), moved = position - m_from;
    m_from = position;
    d.setAxis(panned(view.axis(), -moved.x()));
    if (moved.y() != 0)
        view.verticalScrollBar()->setValue(view.verticalScrollBar()->value() - moved.y());
}

void Panning::release(const QMouseEvent&)
{
    view.viewport()->setCursor(Qt::ArrowCursor);
}

} // namespace pipewright
