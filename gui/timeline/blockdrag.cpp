// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/blockdrag.h"

#include "core/schedule/edits.h"
#include "gui/document/namededits.h"
#include "gui/timeline/timelineviewprivate.h"

#include <QMouseEvent>

#include <algorithm>

namespace pipewright {

bool BlockDrag::press(TimelineView::Private& d, const QMouseEvent& event)
{
    const std::optional<Block> block = d.view.blockAt(event.position().toPoint());
    if (!block)
        return false;
    if (event.modifiers() & Qt::ControlModifier) {
        d.toggleInGroup(*block);
        return true;
    }
    if (event.modifiers() & Qt::ShiftModifier) {
        d.extendTo(*block);
        return true;
    }
    d.document.select(block);
    d.chosen = TimelineView::Private::Chosen::Block;
    d.gesture = std::make_unique<BlockDrag>(d, *block, event.position());
    return true;
}

BlockDrag::BlockDrag(TimelineView::Private& d, const Block& block, QPointF pressedAt)
    : Gesture(d), m_held{block, pressedAt - QRectF(view.rectOfBlock(block)).topLeft(), false},
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
    const TimeAxis& axis = view.axis();
    if (position.x() > axis.right() - edge)
        d.setAxis(panned(axis, edge));
    else if (position.x() < axis.left + edge)
        d.setAxis(panned(axis, -edge));
    d.updatePlan(m_held.block, position, event.modifiers());
}

void BlockDrag::release(const QMouseEvent& event)
{
    if (!m_held.moving && !d.group.empty())
        view.selectBlocks({m_held.block}); // a click chooses one again
    if (m_held.moving)
        d.updatePlan(m_held.block, event.position().toPoint(), event.modifiers());
    d.commitPlan();
    d.updateOverlay();
    view.viewport()->update();
}

bool BlockDrag::changeModifiers(Qt::KeyboardModifiers modifiers)
{
    if (m_held.moving)
        d.updatePlan(m_held.block, d.cursor, modifiers);
    return m_held.moving;
}

std::vector<Block> TimelineView::Private::movingWith(const Block& block) const
{
    if (!group.contains(block))
        return {};
    return {group.begin(), group.end()};
}

// ---- By key ---------------------------------------------------------------------------------------

void TimelineView::moveSelection(int places)
{
    const std::optional<Block> selected = d->document.selection();
    const Position position = selected ? pipewright::find(d->document.design().schedule, *selected) : Position{};
    if (position.device < 0 || d->held() || d->moveGroup(places))
        return;
    // "Before the block at index": to get behind the next block, one more.
    const int last = static_cast<int>(d->document.design().schedule.order[position.device].size());
    const int index = std::clamp(places < 0 ? position.index + places : position.index + places + 1, 0, last);
    d->applyOrRefuse(blockMove(d->document.design(), *selected, index));
    ensureVisible(*selected);
}

bool TimelineView::Private::moveGroup(int places)
{
    const std::optional<Block> held = document.selection();
    if (!held || !group.contains(*held))
        return false;
    const Position place = placeOf(document.design().schedule, layout(), *held);
    std::vector<std::uint32_t> moved;
    for (const Block& block : group)
        if (const Position with = placeOf(document.design().schedule, layout(), block);
            with.device == place.device && with.device >= 0)
            moved.push_back(static_cast<std::uint32_t>(with.index));
    if (moved.size() < 2)
        return false;
    std::sort(moved.begin(), moved.end());
    commitOrder(blocksMove(document.design(), place.device, moved, places));
    return true;
}

void TimelineView::rippleSelection(int places)
{
    const std::optional<Block> selected = d->document.selection();
    if (!selected || d->held() || pipewright::find(d->document.design().schedule, *selected).device < 0)
        return;
    d->document.applyLater({RippleBlock{*selected, places}});
    ensureVisible(*selected);
}

void TimelineView::moveStageBy(int devices)
{
    const std::optional<Block> selected = d->document.selection();
    const Position position = selected ? pipewright::find(d->document.design().schedule, *selected) : Position{};
    const int device = position.device + devices;
    if (position.device < 0 || d->held() || device < 0 || device >= d->document.design().schedule.devices())
        return;
    d->applyOrRefuse(MoveStage{selected->stage, device, selected->replica});
    ensureVisible(*selected);
}

} // namespace pipewright
