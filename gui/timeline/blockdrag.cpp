// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/blockdrag.h"

#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QMouseEvent>

namespace pipewright {

bool BlockDrag::press(TimelineParts& d, const QMouseEvent& event)
{
    const std::optional<Block> block = d.map.blockAt(event.position().toPoint());
    if (!block)
        return false;
    if (event.modifiers() & Qt::ControlModifier) {
        d.selection.toggle(*block);
        return true;
    }
    if (event.modifiers() & Qt::ShiftModifier) {
        d.selection.extendTo(*block);
        return true;
    }
    d.document.select(block);
    d.menus.setChosen(TimelineMenus::Chosen::Block);
    d.hand.left = std::make_unique<BlockDrag>(d, *block, event.position());
    return true;
}

BlockDrag::BlockDrag(TimelineParts& d, const Block& block, QPointF pressedAt)
    : Gesture(d), m_held{block, pressedAt - QRectF(d.view.rectOfBlock(block)).topLeft(), false},
      m_pressedAt(pressedAt.toPoint())
{
}

void BlockDrag::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    // Updates follow from the stages, they are not ordered.
    m_held.moving = m_held.moving || (isPass(m_held.block.op) && isBeyondStart(m_pressedAt, position));
    if (!m_held.moving)
        return;
    constexpr int edge = 24; // near an edge the view follows
    const TimeAxis& axis = d.map.axis();
    if (position.x() > axis.right() - edge)
        d.scroll.panBy(edge);
    else if (position.x() < axis.left + edge)
        d.scroll.panBy(-edge);
    hold(position, event.modifiers());
}

void BlockDrag::hold(QPoint position, Qt::KeyboardModifiers modifiers)
{
    d.overlay.setCursor(position);
    d.drop.hold(m_held.block, position, modifiers);
}

void BlockDrag::release(const QMouseEvent& event)
{
    if (!m_held.moving && d.selection.isGroup())
        d.selection.select({m_held.block}); // a click chooses one again
    if (m_held.moving)
        hold(event.position().toPoint(), event.modifiers());
    d.drop.commit();
    d.overlay.update();
    d.view.viewport()->update();
}

bool BlockDrag::changeModifiers(Qt::KeyboardModifiers modifiers)
{
    if (m_held.moving)
        hold(d.overlay.cursor(), modifiers);
    return m_held.moving;
}

} // namespace pipewright
