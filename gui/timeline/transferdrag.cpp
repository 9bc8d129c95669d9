// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/transferdrag.h"

#include "gui/timeline/timelineviewprivate.h"

#include <QAction>
#include <QMouseEvent>

#include <algorithm>

namespace pipewright {

using Chips = TransferLanes::Chips;

bool TransferDrag::press(TimelineView::Private& d, const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    const int device = d.places.transfersAt(position);
    if (device < 0)
        return false;
    if (position.x() < TimelineView::plotLeft()) {
        if (d.places.edgeAt(position))
            return false; // the line below the lane resizes it
        d.chooseLane(device);
        d.view.action(QStringLiteral("laneTransfers"))->trigger();
        return true;
    }
    const std::optional<std::size_t> chip = d.chipAt(position);
    if (!chip) {
        d.document.select(std::nullopt);
        d.chosen = TimelineView::Private::Chosen::Block;
        return true;
    }
    d.view.selectTransfer(device, d.transferLanes.of(device)[*chip].transfer);
    if (!d.chips(device).dense)
        d.gesture = std::make_unique<TransferDrag>(d, device, static_cast<int>(*chip), position);
    return true;
}

void TransferDrag::move(const QMouseEvent& event)
{
    const QPoint position = event.position().toPoint();
    if (!m_moving && !isBeyondStart(m_pressedAt, position))
        return;
    m_moving = true;
    d.cursor = position;
    view.viewport()->setCursor(Qt::ClosedHandCursor);
    // Behind every other chip whose middle is left of the cursor; those outside the view stay on their side.
    const Chips chips = d.chips(m_device);
    const int count = static_cast<int>(d.transferLanes.of(m_device).size());
    int to = chips.shown.empty() ? m_from : static_cast<int>(chips.shown.front().index);
    for (const Chips::Chip& chip : chips.shown)
        if (static_cast<int>(chip.index) != m_from && chip.rect.center().x() < position.x())
            to = static_cast<int>(chip.index) + (static_cast<int>(chip.index) < m_from ? 1 : 0);
    plan(std::clamp(to, 0, std::max(0, count - 1)));
}

void TransferDrag::plan(int to)
{
    if (d.plan && d.plan->index == to) {
        d.updateOverlay();
        return;
    }
    const std::vector<IssuedTransfer>& list = d.transferLanes.of(m_device);
    const Transfer& moved = list[m_from].transfer;
    const auto neighbour = static_cast<std::size_t>(to);
    const QString title = to == m_from ? d.transferLanes.name(moved)
                          : to < m_from
                              ? TimelineView::tr("%1 before %2")
                                    .arg(d.transferLanes.name(moved), d.transferLanes.name(list[neighbour].transfer))
                              : TimelineView::tr("%1 after %2")
                                    .arg(d.transferLanes.name(moved), d.transferLanes.name(list[neighbour].transfer));
    d.setPlan(d.planner.planTransfer(moved, MoveTransfer{m_device, m_from, to}, title));
}

void TransferDrag::addTo(OverlayContent& content) const
{
    if (!m_moving || !d.plan)
        return;
    const QRectF area = d.places.transfers(m_device);
    const Chips chips = d.chips(m_device);
    // The caret stands on the side of the neighbour that the transfer comes to.
    for (const Chips::Chip& chip : chips.shown)
        if (static_cast<int>(chip.index) == d.plan->index) {
            const double x = d.plan->index <= m_from ? chip.rect.left() - 1 : chip.rect.right() + 1;
            content.caret = QLineF(x, area.top() - 3, x, area.bottom() + 3);
        }
}

void TransferDrag::release(const QMouseEvent&)
{
    const Transfer held = d.transferLanes.of(m_device)[m_from].transfer;
    if (m_moving)
        d.commitPlan();
    view.viewport()->setCursor(Qt::ArrowCursor);
    if (m_moving)
        view.selectTransfer(m_device, held);
    d.updateOverlay();
}

// ---- By key ---------------------------------------------------------------------------------------

void TimelineView::moveTransferBy(int places)
{
    int device = -1;
    const std::optional<Transfer> transfer = selectedTransfer(&device);
    if (!transfer || (d->gesture && d->gesture->dependsOnDesign())) {
        Q_EMIT editRefused(tr("Select a transfer, or a block that sends one"));
        return;
    }
    const std::vector<IssuedTransfer> list = d->transferLanes.of(device);
    const auto at = std::find_if(list.begin(), list.end(),
                                 [&](const IssuedTransfer& issued) { return issued.transfer == *transfer; });
    if (at == list.end())
        return;
    const int from = static_cast<int>(at - list.begin());
    const int to = std::clamp(from + places, 0, static_cast<int>(list.size()) - 1);
    if (to == from) {
        Q_EMIT editRefused(places < 0 ? tr("It is the first transfer of its device already")
                                      : tr("It is the last transfer of its device already"));
        return;
    }
    if (!d->strip.showsTransfers(device)) { // an order that nobody sees cannot be followed
        d->strip.setTransfers(device, true);
        d->lanesChanged();
    }
    const MoveTransfer request{device, from, to};
    const Diagnostics faults = d->document.apply(request);
    d->refuse(faults, request);
    if (!hasErrors(faults))
        selectTransfer(device, *transfer);
}

} // namespace pipewright
