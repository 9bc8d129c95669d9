// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/transferdrag.h"

#include "gui/timeline/gatherdrag.h"
#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QAction>
#include <QMouseEvent>

#include <algorithm>

namespace pipewright {

using Chips = TransferLanes::Chips;

bool TransferDrag::press(TimelineParts& d, const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    const int device = d.lanes.places().transfersAt(position);
    if (device < 0)
        return false;
    if (position.x() < TimelineView::plotLeft()) {
        if (d.lanes.places().edgeAt(position))
            return false; // the line below the lane resizes it
        d.lanes.choose(device);
        d.view.action(QStringLiteral("laneTransfers"))->trigger();
        return true;
    }
    const std::optional<std::size_t> chip = d.map.chipAt(position);
    if (!chip) {
        d.selection.clear();
        d.menus.setChosen(TimelineMenus::Chosen::Block);
        return true;
    }
    const Transfer& transfer = d.transfers.of(device)[*chip].transfer;
    const bool dense = d.map.chips(device).isDense(TransferLanes::rowOf(transfer));
    d.view.selectTransfer(device, transfer);
    if (transfer.isWithCopies()) {
        if (!dense && transfer.isGatherForReader())
            d.hand.left = std::make_unique<GatherDrag>(d, device, *chip, position);
    } else if (!dense)
        d.hand.left = std::make_unique<TransferDrag>(d, device, static_cast<int>(*chip), position);
    return true;
}

void TransferDrag::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (!m_moving && !isBeyondStart(m_pressedAt, position))
        return;
    m_moving = true;
    d.overlay.setCursor(position);
    d.view.viewport()->setCursor(Qt::ClosedHandCursor);
    // The new place is behind every other chip whose middle is left of the cursor; chips outside the view stay on their
    // side.
    const Chips chips = d.map.chips(m_device);
    const std::vector<IssuedTransfer>& list = d.transfers.of(m_device);
    const int count = static_cast<int>(list.size());
    const TransferLanes::Row row = TransferLanes::rowOf(list[m_from].transfer);
    std::optional<int> to;
    for (const Chips::Chip& chip : chips.shown) {
        if (TransferLanes::rowOf(list[chip.index].transfer) != row)
            continue; // its row runs in parallel
        const int index = static_cast<int>(chip.index);
        if (index != m_from && chip.rect.center().x() < position.x())
            to = index + (index < m_from ? 1 : 0);
        else if (!to)
            to = index;
    }
    plan(std::clamp(to.value_or(m_from), 0, std::max(0, count - 1)));
}

void TransferDrag::plan(int to)
{
    if (d.drop.plan() && d.drop.plan()->index == to) {
        d.overlay.update();
        return;
    }
    const std::vector<IssuedTransfer>& list = d.transfers.of(m_device);
    const Transfer& moved = list[m_from].transfer;
    const QString title =
        to == m_from ? d.transfers.name(moved)
        : to < m_from
            ? TimelineView::tr("%1 before %2").arg(d.transfers.name(moved), d.transfers.name(list[to].transfer))
            : TimelineView::tr("%1 after %2").arg(d.transfers.name(moved), d.transfers.name(list[to].transfer));
    d.drop.holdTransfer(moved, MoveTransfer{m_device, m_from, to}, title);
}

void TransferDrag::addTo(OverlayContent& content) const
{
    if (!m_moving || !d.drop.plan())
        return;
    const Chips chips = d.map.chips(m_device);
    // The caret stands on the side of the neighbour that the transfer comes to.
    for (const Chips::Chip& chip : chips.shown)
        if (static_cast<int>(chip.index) == d.drop.plan()->index) {
            const double x = d.drop.plan()->index <= m_from ? chip.rect.left() - 1 : chip.rect.right() + 1;
            content.caret = QLineF(x, chip.rect.top() - 5, x, chip.rect.bottom() + 5);
        }
}

void TransferDrag::release(const QMouseEvent&)
{
    const Transfer held = d.transfers.of(m_device)[m_from].transfer;
    if (m_moving)
        d.drop.commit();
    d.view.viewport()->setCursor(Qt::ArrowCursor);
    if (m_moving)
        d.view.selectTransfer(m_device, held);
    d.overlay.update();
}

} // namespace pipewright
