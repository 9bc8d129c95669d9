// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/minimap.h"

#include "gui/theme.h"
#include "gui/timeline/lanegeometry.h"

#include <QMouseEvent>
#include <QPainter>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int edge = 4;     // pixels beside an edge of the frame that still grip it
constexpr int inset = 4;    // above and below the rows
constexpr int margin = 10;  // as in the timeline: free before time 0 and after the end
constexpr int narrowest = 6; // the frame is never drawn narrower, or it could not be gripped

} // namespace

Minimap::Minimap(TimelineView& timeline, QWidget* parent) : QWidget(parent), m_timeline(timeline)
{
    setFixedHeight(stripHeight);
    setMouseTracking(true);
    setAccessibleName(tr("Overview"));
    setAccessibleDescription(tr("The whole schedule; the frame shows the part that the timeline shows"));
    setToolTip(tr("Drag the frame to pan, its edges to zoom; double click for the whole schedule"));
    connect(&timeline, &TimelineView::viewRangeChanged, this, [this] { update(); });
    // A drag gives many previews a second; the strip takes one up when the hand rests.
    m_later.setSingleShot(true);
    m_later.setInterval(200);
    connect(&m_later, &QTimer::timeout, this, &Minimap::drop);
    connect(&timeline, &TimelineView::previewChanged, &m_later, qOverload<>(&QTimer::start));
    connect(&timeline.document(), &Document::designChanged, this, &Minimap::drop);
    connect(&timeline.document(), &Document::overlayChanged, this, &Minimap::drop);
}

void Minimap::drop()
{
    m_picture = {};
    update();
}

TimeAxis Minimap::whole() const
{
    TimeAxis axis;
    axis.left = TimelineView::plotLeft();
    axis.width = m_timeline.plotWidth();
    return fitted(axis, 0, static_cast<double>(std::max<Nanoseconds>(1, m_timeline.total())), margin);
}

QRect Minimap::frame() const
{
    const TimeAxis axis = whole();
    const auto at = [&axis](double time) { return static_cast<int>(std::lround(std::clamp(axis.xOf(time), double(axis.left), double(axis.right())))); };
    const int left = at(m_timeline.axis().start);
    const int right = std::max(left + narrowest, at(m_timeline.axis().end()));
    return {left, 1, right - left, height() - 3};
}

void Minimap::render()
{
    const Theme& theme = Theme::of(*this);
    const double scale = devicePixelRatioF();
    m_picture = QPixmap(QSize(static_cast<int>(width() * scale), static_cast<int>(height() * scale)));
    m_picture.setDevicePixelRatio(scale);
    m_picture.fill(theme.background);
    QPainter painter(&m_picture);
    const std::vector<Lane>& lanes = m_timeline.layout().lanes();
    const TimeAxis axis = whole();
    const int room = height() - 2 * inset - 1;
    // More devices than pixels: as many of them as there are pixels, evenly chosen.
    const int rows = std::min(static_cast<int>(lanes.size()), room);
    for (int row = 0; row < rows; ++row) {
        const auto device = static_cast<std::size_t>(row) * lanes.size() / static_cast<std::size_t>(rows);
        const int top = inset + row * room / rows, bottom = inset + (row + 1) * room / rows;
        const QRectF area(0, top, width(), std::max(1, bottom - top - (bottom - top > 3 ? 1 : 0)));
        const LaneGeometry geometry = laneGeometry(lanes[device], axis, area, 0, scale);
        for (std::size_t op = 0; op < geometry.merged.size(); ++op)
            for (const QRectF& rect : geometry.merged[op])
                painter.fillRect(rect, theme.fills[op]);
        for (const BlockRect& item : geometry.blocks)
            painter.fillRect(item.rect, theme.fill(lanes[device].blocks()[item.index].block.op));
    }
}

void Minimap::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    if (m_picture.isNull() || m_picture.size() != QSize(static_cast<int>(width() * devicePixelRatioF()), static_cast<int>(height() * devicePixelRatioF())))
        render();
    QPainter painter(this);
    painter.drawPixmap(0, 0, m_picture);
    const QRect window = frame();
    QColor veil = theme.background;
    veil.setAlphaF(0.6f);
    const int left = TimelineView::plotLeft();
    painter.fillRect(QRect(left, 0, window.left() - left, height() - 1), veil);
    painter.fillRect(QRect(window.right() + 1, 0, width() - window.right() - 1, height() - 1), veil);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme.accent, 1));
    painter.drawRoundedRect(QRectF(window).adjusted(0.5, 0.5, -0.5, -0.5), Theme::blockRadius, Theme::blockRadius);
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.dim);
    painter.drawText(QRect(18, 0, left - 24, height() - 1), Qt::AlignLeft | Qt::AlignVCenter, tr("overview"));
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.fillRect(QRect(0, height() - 1, width(), 1), theme.hairline);
}

Minimap::Grip Minimap::gripAt(int x) const
{
    const QRect window = frame();
    if (std::abs(x - window.left()) <= edge)
        return Grip::Left;
    if (std::abs(x - window.right()) <= edge)
        return Grip::Right;
    return window.left() < x && x < window.right() ? Grip::Frame : Grip::None;
}

void Minimap::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || event->position().x() < TimelineView::plotLeft())
        return;
    const int x = event->position().toPoint().x();
    m_grip = gripAt(x);
    if (m_grip == Grip::None) {
        m_grip = Grip::Frame;
        m_offset = frame().width() / 2.0;
        mouseMoveEvent(event);
    }
    m_offset = x - frame().left();
}

void Minimap::mouseMoveEvent(QMouseEvent* event)
{
    const double x = event->position().x();
    if (m_grip == Grip::None) {
        const Grip grip = gripAt(static_cast<int>(x));
        setCursor(grip == Grip::None ? Qt::ArrowCursor : grip == Grip::Frame ? Qt::OpenHandCursor : Qt::SizeHorCursor);
        return;
    }
    const TimeAxis axis = whole();
    const TimeAxis now = m_timeline.axis();
    if (m_grip == Grip::Frame) {
        TimeAxis moved = now;
        moved.start = axis.timeAt(x - m_offset);
        m_timeline.setAxis(moved);
        return;
    }
    // At least a pixel of the strip stays in sight.
    const double time = axis.timeAt(x);
    const double from = m_grip == Grip::Left ? std::min(time, now.end() - axis.nsPerPixel) : now.start;
    const double to = m_grip == Grip::Right ? std::max(time, now.start + axis.nsPerPixel) : now.end();
    m_timeline.setAxis(fitted(now, from, to));
}

void Minimap::mouseReleaseEvent(QMouseEvent*)
{
    m_grip = Grip::None;
}

void Minimap::mouseDoubleClickEvent(QMouseEvent*)
{
    m_grip = Grip::None;
    m_timeline.showAll();
}

void Minimap::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        drop();
}

} // namespace pipewright
