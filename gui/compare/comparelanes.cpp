// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/compare/comparelanes.h"

#include "gui/document/document.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/widgets/words.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int headerWidth = 112;
constexpr int titleHeight = 30, labelHeight = 15;
constexpr int gap = 8;
constexpr int margin = 14;

} // namespace

CompareLanes::CompareLanes(QWidget* parent) : QAbstractScrollArea(parent)
{
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(tr("Schedules on one time axis"));
    viewport()->setToolTip(
        tr("Ctrl+wheel or W and S zoom, Shift+wheel, dragging or A and D move, Home shows everything"));
}

CompareLanes::Schedule CompareLanes::scheduleOf(const QString& name, const Design& design, const Prediction* prediction,
                                                const QString& note)
{
    Schedule schedule;
    schedule.name = name;
    schedule.note = note;
    if (prediction) {
        schedule.layout = TimelineLayout(prediction->program, prediction->timeline, design.schedule.devices());
        schedule.summary = durationText(prediction->metrics.makespan);
        for (int device = 0; device < design.schedule.devices(); ++device)
            schedule.lanes.push_back(deviceLabel(design, device));
    }
    return schedule;
}

void CompareLanes::setSchedules(std::vector<Schedule> schedules)
{
    const Nanoseconds before = m_total;
    m_schedules = std::move(schedules);
    m_total = 0;
    for (const Schedule& schedule : m_schedules)
        m_total = std::max(m_total, schedule.layout.makespan());
    m_current = std::clamp(m_current, 0, std::max(0, static_cast<int>(m_schedules.size()) - 1));
    setMaximumHeight(
        std::max(minimumSizeHint().height(), heightWith(mostLane))); // the table gets the rest of the window's height
    updateScroll();
    if (m_total != before)
        showAll();
    viewport()->update();
}

void CompareLanes::setCurrent(int schedule)
{
    if (schedule == m_current || schedule < 0 || schedule >= static_cast<int>(m_schedules.size()))
        return;
    m_current = schedule;
    viewport()->update();
    Q_EMIT chosen(schedule);
}

/// Lanes of all schedules; the note of a schedule without lanes counts as one.
int CompareLanes::laneCount() const
{
    int lanes = 0;
    for (const Schedule& schedule : m_schedules)
        lanes += std::max(1, static_cast<int>(schedule.layout.lanes().size()));
    return std::max(1, lanes);
}

int CompareLanes::laneHeight() const
{
    return std::clamp((viewport()->height() - heightWith(0)) / laneCount(), leastLane, mostLane);
}

int CompareLanes::heightWith(int laneHeight) const
{
    return static_cast<int>(m_schedules.size()) * (titleHeight + gap) + TimelinePainter::rulerHeight
           + laneCount() * laneHeight;
}

int CompareLanes::heightOf(std::size_t schedule) const
{
    const int lanes = static_cast<int>(m_schedules[schedule].layout.lanes().size());
    return titleHeight + std::max(1, lanes) * laneHeight() + gap;
}

QRect CompareLanes::rectOfSchedule(int schedule) const
{
    int top = TimelinePainter::rulerHeight - verticalScrollBar()->value();
    for (int i = 0; i < schedule; ++i)
        top += heightOf(i);
    return {0, top, viewport()->width(), heightOf(schedule) - gap};
}

void CompareLanes::updateScroll()
{
    int height = TimelinePainter::rulerHeight;
    for (std::size_t i = 0; i < m_schedules.size(); ++i)
        height += heightOf(i);
    verticalScrollBar()->setRange(0, std::max(0, height - viewport()->height()));
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(laneHeight());
}

void CompareLanes::setAxis(TimeAxis axis)
{
    axis.left = headerWidth;
    axis.width = std::max(1, viewport()->width() - headerWidth);
    m_axis = clamped(axis, double(m_total), margin);
    viewport()->update();
}

void CompareLanes::showAll()
{
    TimeAxis axis = m_axis;
    axis.left = headerWidth;
    axis.width = std::max(1, viewport()->width() - headerWidth);
    setAxis(fitted(axis, 0, double(m_total), margin));
}

void CompareLanes::zoomBy(double factor, double anchorX)
{
    setAxis(zoomed(m_axis, factor, anchorX));
}

void CompareLanes::panBy(double pixels)
{
    setAxis(panned(m_axis, pixels));
}

void CompareLanes::resizeEvent(QResizeEvent* event)
{
    QAbstractScrollArea::resizeEvent(event);
    const bool whole = m_axis == clamped(fitted(m_axis, 0, double(m_total), margin), double(m_total), margin);
    updateScroll();
    if (whole) // still shows everything when the scroll bar appears or disappears
        showAll();
    else
        setAxis(m_axis);
}

void CompareLanes::scrollContentsBy(int, int)
{
    viewport()->update();
}

void CompareLanes::wheelEvent(QWheelEvent* event)
{
    const QPoint angle = event->angleDelta();
    const double notches = (angle.y() != 0 ? angle.y() : angle.x()) / 120.0;
    event->accept();
    if (event->modifiers() & Qt::ControlModifier)
        zoomBy(std::pow(1.25, notches), event->position().x());
    else if (event->modifiers() & Qt::ShiftModifier)
        panBy(-notches * 90);
    else
        verticalScrollBar()->setValue(verticalScrollBar()->value()
                                      - static_cast<int>(std::lround(notches * laneHeight())));
}

void CompareLanes::mousePressEvent(QMouseEvent* event)
{
    m_pressedX = event->position().x();
    m_pressedAxis = m_axis;
    for (int i = 0; i < static_cast<int>(m_schedules.size()); ++i)
        if (event->button() == Qt::LeftButton && rectOfSchedule(i).contains(event->pos()))
            setCurrent(i);
}

void CompareLanes::mouseMoveEvent(QMouseEvent* event)
{
    if (event->buttons() & (Qt::LeftButton | Qt::MiddleButton))
        setAxis(panned(m_pressedAxis, m_pressedX - event->position().x()));
}

void CompareLanes::keyPressEvent(QKeyEvent* event)
{
    const double middle = m_axis.left + m_axis.width / 2.0;
    switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus: return zoomBy(1.25, middle);
    case Qt::Key_S:
    case Qt::Key_Minus: return zoomBy(0.8, middle);
    case Qt::Key_A:
    case Qt::Key_Left: return panBy(-0.1 * m_axis.width);
    case Qt::Key_D:
    case Qt::Key_Right: return panBy(0.1 * m_axis.width);
    case Qt::Key_Up: return setCurrent(m_current - 1);
    case Qt::Key_Down: return setCurrent(m_current + 1);
    case Qt::Key_Home:
    case Qt::Key_0: return showAll();
    default: QAbstractScrollArea::keyPressEvent(event);
    }
}

void CompareLanes::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(viewport());
    const TimelinePainter lanes(theme, devicePixelRatioF());
    painter.fillRect(viewport()->rect(), theme.background);
    const std::vector<double> times = rulerTicks(m_axis);
    for (std::size_t i = 0; i < m_schedules.size(); ++i) {
        const QRect rect = rectOfSchedule(static_cast<int>(i));
        if (rect.bottom() >= TimelinePainter::rulerHeight && rect.top() <= viewport()->height())
            paintSchedule(painter, lanes, times, i, rect.top());
    }
    lanes.ruler(painter, m_axis, QRect(0, 0, viewport()->width(), TimelinePainter::rulerHeight), times);
}

void CompareLanes::paintSchedule(QPainter& painter, const TimelinePainter& lanes, const std::vector<double>& times,
                                 std::size_t schedule, int top) const
{
    const Theme& theme = Theme::of(*this);
    const Schedule& shown = m_schedules[schedule];
    const bool current = static_cast<int>(schedule) == m_current;
    const int width = viewport()->width();
    painter.fillRect(QRect(0, top, width, titleHeight), current ? theme.control : theme.background);
    if (current)
        painter.fillRect(QRect(0, top, 3, titleHeight), theme.accent);
    painter.setPen(theme.text);
    painter.setFont(Theme::words(TextSize::Large, QFont::DemiBold));
    const QRect title(18, top, width - 36, titleHeight);
    painter.drawText(title, Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(shown.name, Qt::ElideMiddle, width * 2 / 3));
    painter.setPen(theme.dim);
    painter.setFont(Theme::numbers(TextSize::Small));
    painter.drawText(title, Qt::AlignRight | Qt::AlignVCenter, shown.summary);

    const int first = top + titleHeight;
    if (shown.layout.lanes().empty()) {
        painter.setFont(Theme::words());
        painter.drawText(QRect(18, first, width - 36, usualLane), Qt::AlignLeft | Qt::AlignVCenter, shown.note);
        return;
    }
    const int laneHeight = this->laneHeight();
    const int named = (labelHeight + laneHeight - 1) / laneHeight; // every so many lanes have a name
    for (std::size_t device = 0; device < shown.layout.lanes().size(); ++device) {
        const QRect lane(0, first + static_cast<int>(device) * laneHeight, width, laneHeight);
        const int above = std::min(3, laneHeight / 8), below = std::min(4, laneHeight / 6);
        const QRectF area(m_axis.left, lane.top() + above, m_axis.width, laneHeight - above - below);
        const LaneGround ground{lane, false, std::nullopt, lane.adjusted(0, 0, 0, -1)};
        lanes.ground(painter, m_axis, ground, times);
        painter.save();
        painter.setClipRect(QRect(m_axis.left, lane.top(), m_axis.width, laneHeight));
        const Lane& blocks = shown.layout.lanes()[device];
        const LaneGeometry geometry = laneGeometry(blocks, m_axis, area, shown.layout.makespan(), devicePixelRatioF());
        lanes.blocks(painter, m_axis, ground, times, area, blocks, geometry);
        painter.restore();
    }
    painter.setFont(Theme::words());
    painter.setPen(theme.text);
    for (std::size_t device = 0; device < shown.lanes.size(); device += static_cast<std::size_t>(named)) {
        const QRect place(18, first + static_cast<int>(device) * laneHeight, headerWidth - 24,
                          std::max(laneHeight, labelHeight));
        painter.drawText(place, Qt::AlignLeft | Qt::AlignVCenter, shown.lanes[device]);
    }
    // A line at the schedule's end through its lanes.
    const double end = m_axis.xOf(double(shown.layout.makespan()));
    if (end >= m_axis.left)
        painter.fillRect(QRectF(end, first, 1.5, double(shown.layout.lanes().size()) * laneHeight), theme.accent);
}

} // namespace pipewright

#include "moc_comparelanes.cpp"
