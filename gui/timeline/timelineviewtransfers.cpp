// SPDX-License-Identifier: GPL-3.0-or-later
// The sub-lanes of TimelineView: below a device's blocks what it sends and receives, in the order in which it
// issues them. A chip stands where its transfer begins, or directly behind the chip before it, so that the order
// can be read and gripped also where transfers take no time at all; where they are too many for that, ticks stand
// at their times.
#include "gui/timeline/timelineviewprivate.h"

#include "core/program/transferorder.h"
#include "gui/timeline/timelinetext.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

constexpr double narrowestChip = 15; // an arrow fits
constexpr double namedChip = 34;     // "F12→3" in small letters does not, "→3" does; the name goes where it fits

} // namespace

QRectF TimelineView::Private::transferArea(int device) const
{
    const int height = strip.transferHeight(device);
    if (height == 0)
        return {};
    const QRect lane = laneRect(device);
    return QRectF(lane.left(), lane.bottom() - height, lane.width(), height - 2);
}

const std::vector<IssuedTransfer>& TimelineView::Private::transfers(int device) const
{
    static const std::vector<IssuedTransfer> nothing;
    const Prediction* prediction = document.prediction();
    if (!prediction || device < 0 || device >= lanes())
        return nothing;
    transferLists.resize(static_cast<std::size_t>(lanes()));
    std::optional<std::vector<IssuedTransfer>>& list = transferLists[device];
    if (!list)
        list = transfersOf(prediction->program, device);
    return *list;
}

TimelineView::Private::TransferChips TimelineView::Private::chips(int device) const
{
    TransferChips result;
    const QRectF area = transferArea(device);
    const Prediction* prediction = document.prediction();
    if (area.isNull() || !prediction)
        return result;
    const TimeAxis& axis = view.m_axis;
    const std::vector<IssuedTransfer>& list = transfers(device);
    const Timeline& timeline = prediction->timeline;
    int visible = 0;
    for (const IssuedTransfer& issued : list) {
        const double x = axis.xOf(static_cast<double>(timeline.start[issued.task]));
        visible += x >= axis.left && x < axis.right();
    }
    result.dense = visible * narrowestChip > axis.width * 0.9;
    double free = -1e18;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const double start = axis.xOf(static_cast<double>(timeline.start[list[i].task]));
        const double end = axis.xOf(static_cast<double>(timeline.end[list[i].task]));
        const double x = result.dense ? start : std::max(std::round(start), free);
        const double width =
            result.dense ? std::max(1.0, end - start) : std::max(narrowestChip, std::round(end - start));
        free = x + width + 1;
        if (x + width >= axis.left && x < axis.right())
            result.shown.push_back({QRectF(x, area.top() + 2, width, area.height() - 4), i});
    }
    return result;
}

QString TimelineView::Private::transferName(const Transfer& transfer) const
{
    return TimelineView::tr("%1 to %2")
        .arg(blockText(transfer.producer), deviceLabel(document.design(), transfer.destination));
}

QString TimelineView::Private::transferText(int device, std::size_t index) const
{
    const std::vector<IssuedTransfer>& list = transfers(device);
    const Prediction* prediction = document.prediction();
    if (!prediction || index >= list.size())
        return {};
    const IssuedTransfer& issued = list[index];
    Bytes bytes = 0;
    for (const BufferId buffer : prediction->program.reads(issued.task))
        bytes += prediction->program.buffers[buffer].bytes;
    const Timeline& timeline = prediction->timeline;
    return TimelineView::tr("%1 %2 as number %3 of %4: %5, %6 to %7%8")
        .arg(deviceLabel(document.design(), device),
             issued.sends ? TimelineView::tr("sends") : TimelineView::tr("receives"))
        .arg(index + 1)
        .arg(list.size())
        .arg(transferName(issued.transfer), durationText(timeline.start[issued.task]),
             durationText(timeline.end[issued.task]),
             (bytes > 0 ? QStringLiteral(", ") + sizeText(bytes) : QString())
                 + (isStated(issued.transfer) ? TimelineView::tr(", its place is stated") : QString()));
}

bool TimelineView::Private::isStated(const Transfer& transfer) const
{
    const std::vector<TransferPrecedence>& stated = document.design().schedule.transferOrder;
    return std::any_of(stated.begin(), stated.end(), [&](const TransferPrecedence& pair) {
        return pair.first == transfer || pair.second == transfer;
    });
}

void TimelineView::Private::paintTransfers(QPainter& painter, int device)
{
    const QRectF area = transferArea(device);
    if (area.isNull())
        return;
    const Theme& theme = Theme::of(view);
    const TimeAxis& axis = view.m_axis;
    painter.save();
    painter.setPen(theme.hairline);
    painter.drawLine(QPointF(0, area.top()), QPointF(area.right(), area.top()));
    const TransferChips chips = this->chips(device);
    const std::vector<IssuedTransfer>& list = transfers(device);
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.dim);
    painter.drawText(QRectF(14, area.top(), plotLeft() - 18, area.height()), Qt::AlignVCenter | Qt::AlignLeft,
                     list.empty()  ? TimelineView::tr("no transfers")
                     : chips.dense ? TimelineView::tr("zoom to reorder")
                                   : TimelineView::tr("▾ %1 transfers").arg(list.size()));
    painter.setClipRect(QRectF(axis.left, area.top(), axis.width, area.height()), Qt::IntersectClip);
    painter.setRenderHint(QPainter::Antialiasing, !chips.dense);
    painter.setFont(Theme::numbers(TextSize::Small));
    const std::optional<Transfer> selected = view.selectedTransfer();
    for (const TransferChips::Chip& chip : chips.shown) {
        const IssuedTransfer& issued = list[chip.index];
        QColor fill = theme.fill(issued.transfer.producer.op == Op::F ? Op::F : Op::I);
        if (chips.dense) {
            painter.fillRect(chip.rect, fill);
            continue;
        }
        // What comes in is an outline, what goes out is filled: told apart without colour too.
        painter.setPen(issued.sends ? Qt::NoPen : QPen(fill, 1));
        painter.setBrush(issued.sends ? QBrush(fill) : QBrush(Qt::NoBrush));
        painter.drawRoundedRect(chip.rect.adjusted(0.5, 0.5, -0.5, -0.5), 2, 2);
        painter.setPen(issued.sends ? theme.ink : theme.text);
        const QString name = blockText(issued.transfer.producer);
        const QString arrow = issued.sends ? QStringLiteral("→") : QStringLiteral("←");
        const int other =
            issued.sends ? issued.transfer.destination : document.prediction()->program.tasks[issued.task].device;
        const QString full =
            issued.sends ? QStringLiteral("%1→%2").arg(name).arg(other) : QStringLiteral("%1←%2").arg(name).arg(other);
        const double width = painter.fontMetrics().horizontalAdvance(full);
        QString text = arrow;
        if (width + 4 <= chip.rect.width())
            text = full;
        else if (chip.rect.width() >= namedChip)
            text = arrow + QString::number(other);
        painter.drawText(chip.rect, Qt::AlignCenter, text);
        if (isStated(issued.transfer))
            painter.fillRect(QRectF(chip.rect.left() + 1, chip.rect.bottom() - 2, chip.rect.width() - 2, 2),
                             theme.accent);
        if (selected == issued.transfer) {
            painter.setPen(QPen(theme.selection, 1.5));
            painter.setBrush(Qt::NoBrush);
            painter.drawRoundedRect(chip.rect.adjusted(0.75, 0.75, -0.75, -0.75), 2, 2);
        }
    }
    painter.restore();
}

// ---- By mouse -------------------------------------------------------------------------------------

int TimelineView::Private::transferLaneAt(QPoint position) const
{
    const int lane = laneAt(position.y());
    return lane >= 0 && transferArea(lane).contains(position) ? lane : -1;
}

std::optional<std::size_t> TimelineView::Private::chipAt(QPoint position) const
{
    const int device = transferLaneAt(position);
    if (device < 0 || position.x() < plotLeft())
        return std::nullopt;
    const TransferChips chips = this->chips(device);
    std::optional<std::size_t> found;
    double nearest = 2; // pixels beside a tick that still grip it
    for (const TransferChips::Chip& chip : chips.shown) {
        const double away = std::max({0.0, chip.rect.left() - position.x(), position.x() - chip.rect.right()});
        if (away <= nearest - (found ? 0.5 : 0)) {
            found = chip.index;
            nearest = away;
        }
        if (away == 0)
            break;
    }
    return found;
}

bool TimelineView::Private::hoverTransfer(QPoint position)
{
    const int device = transferLaneAt(position);
    if (device < 0)
        return false;
    const std::optional<std::size_t> chip = chipAt(position);
    const bool dense = chips(device).dense;
    view.viewport()->setCursor(chip && !dense              ? Qt::OpenHandCursor
                               : position.x() < plotLeft() ? Qt::PointingHandCursor
                                                           : Qt::ArrowCursor);
    if (chip)
        Q_EMIT view.hovered(transferText(device, *chip));
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
    addAction("transferFree", TimelineView::tr("Transfer where its data puts it"),
              TimelineView::tr("Forgets what was stated about its order"), Qt::CTRL | Qt::Key_Backspace, [this] {
                  const std::optional<Transfer> transfer = view.selectedTransfer();
                  if (!transfer || !isStated(*transfer)) {
                      Q_EMIT view.editRefused(
                          transfer
                              ? TimelineView::tr("%1 is where its data puts it already").arg(transferName(*transfer))
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
    const std::vector<IssuedTransfer>& list = d->transfers(device);
    for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].transfer == transfer)
            Q_EMIT hovered(d->transferText(device, i));
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
    for (const IssuedTransfer& issued : d->transfers(home))
        if (issued.sends && issued.transfer.producer == *selected) {
            if (device)
                *device = home;
            return issued.transfer;
        }
    return std::nullopt;
}

std::vector<Transfer> TimelineView::visibleTransfers(int device) const
{
    std::vector<Transfer> result;
    const std::vector<IssuedTransfer>& list = d->transfers(device);
    int pixel = -1; // ticks may share one; then one stands for them
    for (const Private::TransferChips::Chip& chip : d->chips(device).shown)
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
    const int device = d->transferLaneAt(position);
    return std::pair(device, d->transfers(device)[*chip].transfer);
}

QString TimelineView::nameOfTransfer(int device, const Transfer& transfer) const
{
    const std::vector<IssuedTransfer>& list = d->transfers(device);
    for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].transfer == transfer)
            return d->transferText(device, i);
    return {};
}

QRect TimelineView::rectOfTransfer(int device, const Transfer& transfer) const
{
    const std::vector<IssuedTransfer>& list = d->transfers(device);
    for (const Private::TransferChips::Chip& chip : d->chips(device).shown)
        if (list[chip.index].transfer == transfer)
            return chip.rect.toAlignedRect();
    return {};
}

} // namespace pipewright
