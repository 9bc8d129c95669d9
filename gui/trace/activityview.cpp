// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/activityview.h"

#include "gui/timeline/timelinepainter.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/wheelstep.h"

#include <QEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int headerWidth = 200;
constexpr int margin = 12;

} // namespace

ActivityView::ActivityView(QWidget* parent)
    : QAbstractScrollArea(parent), m_trace(std::make_shared<const StoredActivities>()), m_rows(*m_trace)
{
    onThemeChange(this, [this] { viewport()->update(); });
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Lanes of the trace"));
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    viewport()->setMouseTracking(true);
}

ActivityView::~ActivityView() = default;

void ActivityView::setTrace(std::shared_ptr<const StoredActivities> trace)
{
    m_trace = std::move(trace);
    m_rows = ActivityRows(*m_trace);
    m_painter.reset();
    m_selected.reset();
    m_correlated.clear();
    m_highlight.clear();
    m_range.reset();
    m_total = 1;
    for (const Track& track : m_trace->tracks)
        if (track.size() > 0)
            m_total = std::max(m_total, track.end.back());
    for (const TraceCounter& counter : m_trace->counters)
        if (!counter.time.empty())
            m_total = std::max(m_total, counter.time.back());
    updateScroll();
    verticalScrollBar()->setValue(0);
    showAll();
    Q_EMIT selectionChanged();
}

int ActivityView::yOf(int contentY) const
{
    return contentY + TimelinePainter::rulerHeight - verticalScrollBar()->value();
}

int ActivityView::contentY(int y) const
{
    return y - TimelinePainter::rulerHeight + verticalScrollBar()->value();
}

void ActivityView::updateScroll()
{
    const int page = std::max(1, viewport()->height() - TimelinePainter::rulerHeight);
    verticalScrollBar()->setRange(0, std::max(0, m_rows.height() - page));
    verticalScrollBar()->setPageStep(page);
    verticalScrollBar()->setSingleStep(ActivityRows::trackHeight);
}

void ActivityView::setAxis(TimeAxis axis)
{
    axis.left = headerWidth;
    axis.width = std::max(1, viewport()->width() - headerWidth);
    axis = clamped(axis, double(m_total), margin);
    if (axis == m_axis)
        return;
    m_axis = axis;
    viewport()->update();
    Q_EMIT windowChanged();
}

void ActivityView::showAll()
{
    showRange(0, m_total);
}

void ActivityView::showRange(Nanoseconds from, Nanoseconds to)
{
    TimeAxis axis = m_axis;
    axis.left = headerWidth;
    axis.width = std::max(1, viewport()->width() - headerWidth);
    setAxis(fitted(axis, double(from), double(to), margin));
}

void ActivityView::zoomBy(double factor, double anchorX)
{
    setAxis(zoomed(m_axis, factor, std::max(anchorX, double(m_axis.left))));
}

void ActivityView::panBy(double pixels)
{
    setAxis(panned(m_axis, pixels));
}

void ActivityView::toggleRow(std::size_t row)
{
    m_rows.toggle(row);
    updateScroll();
    viewport()->update();
}

void ActivityView::revealDevice(int rank, int device)
{
    for (const ActivityRows::Row& row : m_rows.rows()) {
        if (row.kind != ActivityRows::Kind::Lane || row.tracks == 0)
            continue;
        const TraceLane& lane = m_trace->lanes[m_trace->tracks[row.firstTrack].lane];
        if (lane.rank == rank && lane.device == device) {
            verticalScrollBar()->setValue(m_rows.rows()[row.group].top);
            return;
        }
    }
}

std::pair<Nanoseconds, Nanoseconds> ActivityView::window() const
{
    return {static_cast<Nanoseconds>(std::max(0.0, m_axis.start)),
            static_cast<Nanoseconds>(std::min(double(m_total), m_axis.end()))};
}

void ActivityView::setRange(std::optional<std::pair<Nanoseconds, Nanoseconds>> range)
{
    if (range && range->first > range->second)
        std::swap(range->first, range->second);
    if (range && range->first == range->second)
        range.reset();
    m_range = range;
    viewport()->update();
    Q_EMIT windowChanged();
}

void ActivityView::resizeEvent(QResizeEvent* event)
{
    QAbstractScrollArea::resizeEvent(event);
    const bool whole = m_axis.start <= 0 && m_axis.end() >= double(m_total);
    updateScroll();
    whole ? showAll() : setAxis(m_axis);
}

void ActivityView::scrollContentsBy(int, int)
{
    viewport()->update();
}

void ActivityView::wheelEvent(QWheelEvent* event)
{
    const WheelStep step = wheelStep(*event, 3 * ActivityRows::trackHeight);
    event->accept();
    if (step.zoom != 1)
        zoomBy(step.zoom, event->position().x());
    else if (step.pan != 0)
        panBy(step.pan);
    else
        verticalScrollBar()->setValue(verticalScrollBar()->value() - step.scroll);
}

void ActivityView::mousePressEvent(QMouseEvent* event)
{
    m_pressedAt = event->pos();
    m_pressedAxis = m_axis;
    m_pressedScroll = verticalScrollBar()->value();
    m_moved = false;
    const bool ruler = event->pos().y() < TimelinePainter::rulerHeight && event->pos().x() >= m_axis.left;
    m_press = event->button() == Qt::MiddleButton               ? Press::Pan
              : event->button() != Qt::LeftButton               ? Press::None
              : ruler || event->modifiers() & Qt::ShiftModifier ? Press::Range
                                                                : Press::Pan;
    if (event->button() == Qt::LeftButton && event->pos().x() < m_axis.left && !ruler)
        if (const auto row = m_rows.at(contentY(event->pos().y()));
            row && event->pos().y() >= TimelinePainter::rulerHeight) {
            m_press = Press::None;
            toggleRow(*row);
        }
}

void ActivityView::mouseMoveEvent(QMouseEvent* event)
{
    if (m_press == Press::None) {
        const auto slice = sliceAt(event->pos());
        Q_EMIT hovered(slice ? describe(*slice) : QString());
        return;
    }
    m_moved = m_moved || (event->pos() - m_pressedAt).manhattanLength() > 4;
    if (!m_moved)
        return;
    if (m_press == Press::Range) {
        const auto timeAt = [&](int x) {
            return static_cast<Nanoseconds>(std::clamp(m_axis.timeAt(x), 0.0, double(m_total)));
        };
        setRange({{timeAt(m_pressedAt.x()), timeAt(event->pos().x())}});
    } else {
        setAxis(panned(m_pressedAxis, m_pressedAt.x() - event->pos().x()));
        verticalScrollBar()->setValue(m_pressedScroll + m_pressedAt.y() - event->pos().y());
    }
}

void ActivityView::mouseReleaseEvent(QMouseEvent* event)
{
    if (event->button() == Qt::LeftButton && !m_moved && m_press == Press::Pan)
        select(sliceAt(event->pos()));
    else if (event->button() == Qt::LeftButton && !m_moved && m_press == Press::Range)
        setRange(std::nullopt);
    m_press = Press::None;
}

void ActivityView::mouseDoubleClickEvent(QMouseEvent* event)
{
    const auto slice = sliceAt(event->pos());
    if (!slice)
        return;
    select(slice);
    const Track& track = m_trace->tracks[slice->track];
    const Nanoseconds start = track.start[slice->slice], end = track.end[slice->slice], margin = (end - start) / 4;
    showRange(std::max<Nanoseconds>(0, start - margin), end + margin);
}

void ActivityView::keyPressEvent(QKeyEvent* event)
{
    const double middle = m_axis.left + m_axis.width / 2.0;
    const auto selected = [&] { return m_selected ? &m_trace->tracks[m_selected->track] : nullptr; };
    switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus: return zoomBy(1.25, middle);
    case Qt::Key_S:
    case Qt::Key_Minus: return zoomBy(0.8, middle);
    case Qt::Key_A: return panBy(-0.1 * m_axis.width);
    case Qt::Key_D: return panBy(0.1 * m_axis.width);
    case Qt::Key_Left:
    case Qt::Key_Comma: return selectNeighbour(-1);
    case Qt::Key_Right:
    case Qt::Key_Period: return selectNeighbour(1);
    case Qt::Key_BracketLeft: return followCorrelation(-1);
    case Qt::Key_BracketRight: return followCorrelation(1);
    case Qt::Key_Home:
    case Qt::Key_0: return showAll();
    case Qt::Key_F:
        if (const Track* track = selected())
            showRange(track->start[m_selected->slice], track->end[m_selected->slice]);
        else if (m_range)
            showRange(m_range->first, m_range->second);
        return;
    case Qt::Key_R:
        if (const Track* track = selected())
            return setRange({{track->start[m_selected->slice], track->end[m_selected->slice]}});
        return setRange(std::nullopt);
    case Qt::Key_Escape:
        if (m_range)
            return setRange(std::nullopt);
        if (m_selected)
            return select(std::nullopt);
        break;
    default: break;
    }
    QAbstractScrollArea::keyPressEvent(event);
}

bool ActivityView::viewportEvent(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        if (const auto slice = sliceAt(help->pos()))
            QToolTip::showText(help->globalPos(), describe(*slice), viewport());
        else
            QToolTip::hideText();
        return true;
    }
    if (event->type() == QEvent::Leave)
        Q_EMIT hovered({});
    return QAbstractScrollArea::viewportEvent(event);
}

} // namespace pipewright

#include "moc_activityview.cpp"
