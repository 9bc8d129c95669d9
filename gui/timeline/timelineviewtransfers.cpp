// SPDX-License-Identifier: GPL-3.0-or-later
// What the mouse and the keys do in the sub-lanes of transfers.
#include "gui/timeline/timelineviewprivate.h"

#include "gui/timeline/timelinetext.h"

#include <QAction>

#include <algorithm>

namespace pipewright {

// ---- By mouse -------------------------------------------------------------------------------------

std::optional<std::size_t> TimelineView::Private::chipAt(QPoint position) const
{
    const int device = places.transfersAt(position);
    if (device < 0 || position.x() < plotLeft())
        return std::nullopt;
    return chips(device).at(position.x());
}

TransferLanes::Chips TimelineView::Private::chips(int device) const
{
    return transferLanes.chips(device, places.transfers(device), view.m_axis, transferTimes());
}

const Timeline& TimelineView::Private::transferTimes() const
{
    static const Timeline nothing;
    if (showsMeasured()) // what was not recorded stands as the records around it allow
        return document.overlay()->explanation.completed;
    const Prediction* prediction = document.prediction();
    return prediction ? prediction->timeline : nothing;
}

bool TimelineView::Private::hoverTransfer(QPoint position)
{
    const int device = places.transfersAt(position);
    if (device < 0)
        return false;
    const std::optional<std::size_t> chip = chipAt(position);
    const bool dense = chips(device).dense;
    view.viewport()->setCursor(chip && !dense              ? Qt::OpenHandCursor
                               : position.x() < plotLeft() ? Qt::PointingHandCursor
                                                           : Qt::ArrowCursor);
    if (chip)
        Q_EMIT view.hovered(transferLanes.text(device, *chip, transferTimes()));
    else
        Q_EMIT view.hovered(dense ? TimelineView::tr("Too many transfers to grip here: zoom in to reorder them")
                                  : TimelineView::tr("What %1 sends (filled) and receives (outlined), in the order it "
                                                     "issues them: drag one to reorder")
                                        .arg(deviceLabel(document.design(), device)));
    return true;
}

// ---- By key ---------------------------------------------------------------------------------------

QAction* TimelineView::Private::addAction(const char* name, const QString& text, const QString& tip,
                                          const QKeySequence& key, const std::function<void()>& run)
{
    auto* action = new QAction(text, &view);
    action->setObjectName(QLatin1String(name));
    action->setShortcut(key);
    action->setToolTip(tip);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    QObject::connect(action, &QAction::triggered, &view, run);
    view.addAction(action);
    return action;
}

void TimelineView::Private::addTransferActions()
{
    addAction("laneTransfers", TimelineView::tr("Show the lane's transfers"),
              TimelineView::tr("Below its blocks, what the device sends and receives, in order"), Qt::Key_Y, [this] {
                  const int lane = laneForKeys();
                  if (lane < 0)
                      return;
                  strip.setTransfers(lane, strip.transferHeight(lane) == 0);
                  lanesChanged();
              });
    addAction("allTransfers", TimelineView::tr("Show the transfers of all lanes"),
              TimelineView::tr("Or hide them all, when they are shown"), Qt::SHIFT | Qt::Key_Y, [this] {
                  bool all = true;
                  for (int lane = 0; lane < strip.lanes(); ++lane)
                      all = all && strip.showsTransfers(lane);
                  for (int lane = 0; lane < strip.lanes(); ++lane)
                      strip.setTransfers(lane, !all);
                  lanesChanged();
              });
    addAction("transferNext", TimelineView::tr("Next transfer of the block"),
              TimelineView::tr("What carries its result, in the list of its sender and then of its receiver"),
              Qt::Key_U, [this] { view.selectNextTransfer(); });
    addAction("transferEarlier", TimelineView::tr("Transfer one place earlier"),
              TimelineView::tr("In the order in which its device issues sends and receives"), Qt::CTRL | Qt::Key_Left,
              [this] { view.moveTransferBy(-1); });
    addAction("transferLater", TimelineView::tr("Transfer one place later"),
              TimelineView::tr("In the order in which its device issues sends and receives"), Qt::CTRL | Qt::Key_Right,
              [this] { view.moveTransferBy(1); });
    addAction(
        "transferFree", TimelineView::tr("Transfer where its data puts it"),
        TimelineView::tr("Forgets what was stated about its order"), Qt::CTRL | Qt::Key_Backspace, [this] {
            const std::optional<Transfer> transfer = view.selectedTransfer();
            if (!transfer || !transferLanes.isStated(*transfer)) {
                Q_EMIT view.editRefused(
                    transfer
                        ? TimelineView::tr("%1 is where its data puts it already").arg(transferLanes.name(*transfer))
                        : TimelineView::tr("Select a transfer, or a block that sends one"));
                return;
            }
            applyOrRefuse(FreeTransfer{*transfer});
        });
}

void TimelineView::selectTransfer(int device, const Transfer& transfer)
{
    d->document.select(transfer.producer);
    d->chosenTransfer = {device, transfer};
    const std::vector<IssuedTransfer>& list = d->transferLanes.of(device);
    for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].transfer == transfer)
            Q_EMIT hovered(d->transferLanes.text(device, i, d->transferTimes()));
    d->chosen = Private::Chosen::Transfer;
    viewport()->update();
    Q_EMIT transferSelected();
}

std::optional<Transfer> TimelineView::selectedTransfer(int* device) const
{
    const std::optional<Block> selected = d->document.selection();
    if (!selected)
        return std::nullopt;
    if (d->chosenTransfer && d->chosenTransfer->second.producer == *selected) {
        if (device)
            *device = d->chosenTransfer->first;
        return d->chosenTransfer->second;
    }
    // Else the first one that the selected block gives rise to.
    const int home = deviceOfBlock(d->document.design().schedule, d->layout(), *selected);
    for (const IssuedTransfer& issued : d->transferLanes.of(home))
        if (issued.sends && issued.transfer.producer == *selected && !issued.transfer.isHostCopy()) {
            if (device)
                *device = home;
            return issued.transfer;
        }
    return std::nullopt;
}

std::vector<Transfer> TimelineView::visibleTransfers(int device) const
{
    std::vector<Transfer> result;
    const std::vector<IssuedTransfer>& list = d->transferLanes.of(device);
    int pixel = -1; // ticks may share one; then one stands for them
    for (const TransferLanes::Chips::Chip& chip : d->chips(device).shown)
        if (const int x = static_cast<int>(chip.rect.left()); x != pixel) {
            result.push_back(list[chip.index].transfer);
            pixel = x;
        }
    return result;
}

std::optional<std::pair<int, Transfer>> TimelineView::transferAt(QPoint position) const
{
    const std::optional<std::size_t> chip = d->chipAt(position);
    if (!chip)
        return std::nullopt;
    const int device = d->places.transfersAt(position);
    return std::pair(device, d->transferLanes.of(device)[*chip].transfer);
}

QString TimelineView::nameOfTransfer(int device, const Transfer& transfer) const
{
    const std::vector<IssuedTransfer>& list = d->transferLanes.of(device);
    for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].transfer == transfer)
            return d->transferLanes.text(device, i, d->transferTimes());
    return {};
}

QRect TimelineView::rectOfTransfer(int device, const Transfer& transfer) const
{
    const std::vector<IssuedTransfer>& list = d->transferLanes.of(device);
    for (const TransferLanes::Chips::Chip& chip : d->chips(device).shown)
        if (list[chip.index].transfer == transfer)
            return chip.rect.toAlignedRect();
    return {};
}

} // namespace pipewright
