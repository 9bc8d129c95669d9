// SPDX-License-Identifier: GPL-3.0-or-later
// The lanes of TimelineView: where they stand, and how they are resized, folded, pinned and put in another
// order, by their labels and by keys. All of it is the view's own and undone by Escape or "as they were".
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineviewprivate.h"

#include <QAction>
#include <QApplication>
#include <QMouseEvent>
#include <QScrollBar>

#include <tuple>

namespace pipewright {

int TimelineView::Private::lanePitch() const
{
    // The lanes without a height of their own share what the others leave.
    int own = 0, common = 0;
    for (int device = 0; device < strip.lanes(); ++device) {
        own += strip.hasOwnHeight(device) ? strip.height(device) : strip.transferHeight(device);
        common += !strip.hasOwnHeight(device);
    }
    if (common == 0)
        return roomyLane;
    const int available = view.viewport()->height() - TimelinePainter::rulerHeight - own;
    return std::clamp(available / common, tightLane, greatLane);
}

void TimelineView::Private::arrangeLanes()
{
    strip.setLanes(lanes());
    strip.setCommonHeight(lanePitch());
    if (currentLane >= lanes())
        currentLane = -1;
}

QRect TimelineView::Private::laneRect(int device) const
{
    if (device < 0 || device >= strip.lanes())
        return {};
    const int scrolled = strip.isPinned(device) ? 0 : view.verticalScrollBar()->value();
    return {0, TimelinePainter::rulerHeight + strip.top(device) - scrolled, view.viewport()->width(),
            strip.height(device)};
}

QRectF TimelineView::Private::blockArea(int device) const
{
    const QRect lane =
        laneRect(device).adjusted(0, 0, 0, device >= 0 && device < strip.lanes() ? -strip.transferHeight(device) : 0);
    const int inset = lane.height() >= 60          ? 10
                      : lane.height() >= tightLane ? 7
                                                   : 3; // outlines and critical marks stand in it
    return QRectF(lane).adjusted(0, inset, 0, -inset - 1);
}

int TimelineView::Private::laneAt(int y) const
{
    const int below = y - TimelinePainter::rulerHeight;
    if (below < 0)
        return -1;
    return strip.laneAt(below < strip.pinnedTotal() ? below : below + view.verticalScrollBar()->value());
}

int TimelineView::Private::laneForKeys() const
{
    const int chosen = view.chosenLane();
    return chosen >= 0 || lanes() == 0 ? chosen : strip.deviceAt(0);
}

int TimelineView::chosenLane() const
{
    if (d->currentLane >= 0)
        return d->currentLane;
    int device = -1;
    if (d->document.selection())
        (void)d->findShown(*d->document.selection(), &device);
    return device;
}

void TimelineView::Private::chooseLane(int lane)
{
    currentLane = lane;
    chosen = Chosen::Lane;
    view.viewport()->update();
    Q_EMIT view.lanesChanged();
}

void TimelineView::Private::chooseLaneBy(int rows)
{
    const int now = view.chosenLane();
    if (lanes() == 0)
        return;
    // Before any is chosen, the first one is next.
    const int row = now < 0 ? 0 : std::clamp(strip.rowOf(now) + rows, 0, lanes() - 1);
    chooseLane(strip.deviceAt(row));
    ensureLaneVisible(currentLane);
    Q_EMIT view.hovered(laneDescription(document.design(), currentLane));
}

void TimelineView::Private::ensureLaneVisible(int device)
{
    if (strip.isPinned(device))
        return;
    QScrollBar& vertical = *view.verticalScrollBar();
    const QRect lane = laneRect(device);
    const int top = TimelinePainter::rulerHeight + strip.pinnedTotal(), bottom = view.viewport()->height();
    if (lane.top() < top)
        vertical.setValue(vertical.value() + lane.top() - top);
    else if (lane.bottom() > bottom)
        vertical.setValue(vertical.value() + lane.bottom() - bottom);
}

void TimelineView::setLaneHeight(int device, int height)
{
    if (device < 0 || device >= d->strip.lanes())
        return;
    if (height <= LaneStrip::foldedHeight)
        d->strip.setFolded(device, true);
    else
        d->strip.setHeight(device, height);
    d->lanesChanged();
}

void TimelineView::setHeightOfLanes(int height)
{
    if (height <= LaneStrip::foldedHeight) {
        for (int device = 0; device < d->strip.lanes(); ++device)
            d->strip.setFolded(device, true);
    } else {
        d->strip.setHeightOfAll(height);
    }
    d->lanesChanged();
}

void TimelineView::setLaneRow(int device, int row)
{
    if (device < 0 || device >= d->strip.lanes())
        return;
    d->strip.move(device, row);
    d->lanesChanged();
}

void TimelineView::Private::lanesChanged()
{
    updateScrollBars();
    updateOverlay();
    view.updateGeometry();
    view.viewport()->update();
    Q_EMIT view.lanesChanged();
}

const LaneStrip& TimelineView::lanes() const
{
    return d->strip;
}

int TimelineView::Private::heightWith(int pitch) const
{
    LaneStrip such = strip;
    such.setLanes(lanes());
    such.setCommonHeight(pitch);
    return TimelinePainter::rulerHeight + std::max(such.total(), tightLane);
}

int TimelineView::naturalHeight() const
{
    return d->heightWith(Private::roomyLane);
}

int TimelineView::greatestHeight() const
{
    return d->heightWith(Private::greatLane);
}

// ---- By mouse -------------------------------------------------------------------------------------

std::optional<int> TimelineView::Private::laneEdgeAt(QPoint position) const
{
    constexpr int reach = 4; // pixels beside the line below a lane that still grip it
    if (position.x() >= plotLeft())
        return std::nullopt;
    const int above = laneAt(position.y() - reach), here = laneAt(position.y());
    if (above >= 0 && above != here)
        return above;
    if (here >= 0 && laneRect(here).bottom() - position.y() < reach)
        return here;
    return std::nullopt;
}

bool TimelineView::Private::pressLane(QPoint position, Qt::KeyboardModifiers modifiers)
{
    if (position.x() >= plotLeft() || position.y() < TimelinePainter::rulerHeight)
        return false;
    const std::optional<int> edge = laneEdgeAt(position);
    const int lane = edge ? *edge : laneAt(position.y());
    if (lane < 0)
        return false;
    chooseLane(lane);
    laneDrag = LaneDrag{lane, edge.has_value(), (modifiers & Qt::ShiftModifier) != 0, false, position, strip};
    return true;
}

void TimelineView::Private::dragLane(QPoint position)
{
    LaneDrag& held = *laneDrag;
    if (!held.moving && (position - held.pressedAt).manhattanLength() < QApplication::startDragDistance())
        return;
    held.moving = true;
    if (held.byEdge) {
        const int height = held.before.height(held.device) + position.y() - held.pressedAt.y();
        if (held.all)
            strip.setHeightOfAll(height);
        else
            strip.setHeight(held.device, height);
        lanesChanged();
        return;
    }
    view.viewport()->setCursor(Qt::ClosedHandCursor);
    // Past the middle of another lane the two change places; a lane's edge would make unequal ones jump.
    const int over = laneAt(position.y());
    if (over < 0 || over == held.device)
        return;
    const int row = strip.rowOf(over);
    const bool down = row > strip.rowOf(held.device);
    const int middle = laneRect(over).center().y();
    if (down ? position.y() > middle : position.y() < middle) {
        strip.move(held.device, row);
        lanesChanged();
    }
}

// ---- By key ---------------------------------------------------------------------------------------

void TimelineView::Private::addLaneActions()
{
    const auto add = [this](const char* name, const QString& text, const QKeySequence& key, auto change) {
        auto* action = new QAction(text, &view);
        action->setObjectName(QLatin1String(name));
        action->setShortcut(key);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        QObject::connect(action, &QAction::triggered, &view, [this, change] {
            const int lane = laneForKeys();
            if (lane < 0)
                return;
            change(lane);
            lanesChanged();
        });
        view.addAction(action);
        return action;
    };
    for (const auto& [name, key, rows] :
         {std::tuple("chooseLaneAbove", Qt::Key_Up, -1), {"chooseLaneBelow", Qt::Key_Down, 1}}) {
        auto* choose = new QAction(rows < 0 ? tr("Choose the lane above") : tr("Choose the lane below"), &view);
        choose->setObjectName(QLatin1String(name));
        choose->setShortcut(Qt::SHIFT | key);
        choose->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        QObject::connect(choose, &QAction::triggered, &view, [this, rows = rows] { chooseLaneBy(rows); });
        view.addAction(choose);
    }
    constexpr int step = 10;
    add("lanePin", tr("Pin the lane to the top"), Qt::Key_P, [this](int lane) {
        strip.setPinned(lane, !strip.isPinned(lane));
    })->setCheckable(true);
    add("laneFold", tr("Fold the lane"), Qt::Key_L, [this](int lane) {
        strip.setFolded(lane, !strip.isFolded(lane));
    })->setCheckable(true);
    add("laneUp", tr("Lane one row up"), Qt::CTRL | Qt::Key_Up,
        [this](int lane) { strip.move(lane, strip.rowOf(lane) - 1); });
    add("laneDown", tr("Lane one row down"), Qt::CTRL | Qt::Key_Down,
        [this](int lane) { strip.move(lane, strip.rowOf(lane) + 1); });
    add("laneHigher", tr("Lane higher"), Qt::CTRL | Qt::SHIFT | Qt::Key_Down,
        [this](int lane) { strip.setHeight(lane, strip.height(lane) + step); });
    add("laneLower", tr("Lane lower"), Qt::CTRL | Qt::SHIFT | Qt::Key_Up,
        [this](int lane) { strip.setHeight(lane, strip.height(lane) - step); });
    add("lanesHigher", tr("All lanes higher"), Qt::CTRL | Qt::SHIFT | Qt::Key_PageDown,
        [this](int lane) { strip.setHeightOfAll(strip.height(lane) + step); });
    add("lanesLower", tr("All lanes lower"), Qt::CTRL | Qt::SHIFT | Qt::Key_PageUp,
        [this](int lane) { strip.setHeightOfAll(strip.height(lane) - step); });
    add("lanesReset", tr("Lanes as they were"), Qt::CTRL | Qt::SHIFT | Qt::Key_Home, [this](int) { strip.reset(); });
}

} // namespace pipewright
