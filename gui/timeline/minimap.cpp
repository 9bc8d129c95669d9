// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/minimap.h"

#include "gui/widgets/theme.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/timetext.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int edge = 4;      // pixels beside an edge of the frame that still grip it
constexpr int inset = 4;     // above and below the rows
constexpr int margin = 10;   // as in the timeline: free before time 0 and after the end
constexpr int narrowest = 6; // the frame is never drawn narrower, or it could not be gripped

} // namespace

Minimap::Minimap(TimelineView& timeline, QWidget* parent) : QWidget(parent), m_timeline(timeline)
{
    onThemeChange(this, [this] { drop(); });
    fitHeight();
    setMouseTracking(true);
    setAccessibleName(tr("Overview"));
    setToolTip(tr("Drag the frame to pan, its edges to zoom; double click for the whole schedule. A drag with Shift "
                  "measures a range. With the focus "
                  "(Tab): arrows pan, "
                  "with Ctrl they move the left edge and with Shift the right one, + and − zoom, Home and End go to "
                  "the ends, 0 shows everything"));
    // By Tab only: with focus by click, the timeline would lose its edit keys.
    setFocusPolicy(Qt::TabFocus);
    setContextMenuPolicy(Qt::ActionsContextMenu);
    addActions();
    describe();
    connect(&timeline, &TimelineView::viewRangeChanged, this, [this] {
        describe();
        update();
    });
    // A drag makes many previews a second; the strip shows one when the mouse rests.
    m_later.setSingleShot(true);
    m_later.setInterval(200);
    connect(&m_later, &QTimer::timeout, this, &Minimap::drop);
    connect(&timeline, &TimelineView::previewChanged, &m_later, qOverload<>(&QTimer::start));
    connect(&timeline, &TimelineView::rangeChanged, this, qOverload<>(&QWidget::update));
    connect(&timeline.document(), &Document::designChanged, this, &Minimap::fitHeight);
    connect(&timeline.document(), &Document::designChanged, this, &Minimap::drop);
    connect(&timeline.document(), &Document::designChanged, this, &Minimap::describe);
    connect(&timeline.document(), &Document::memoryChanged, this, &Minimap::drop);
    connect(&timeline.document(), &Document::overlayChanged, this, &Minimap::drop);
    connect(&timeline.document(), &Document::sideChanged, this, &Minimap::drop);
}

void Minimap::addActions()
{
    const auto add = [this](const QString& text, const QList<QKeySequence>& keys, auto run) {
        auto* action = new QAction(text, this);
        action->setShortcuts(keys);
        action->setShortcutContext(Qt::WidgetShortcut);
        connect(action, &QAction::triggered, this, run);
        addAction(action);
    };
    constexpr double step = 0.1; // of what is shown, as in the timeline
    add(tr("Frame earlier"), {Qt::Key_Left, Qt::Key_A}, [this] { pan(-step); });
    add(tr("Frame later"), {Qt::Key_Right, Qt::Key_D}, [this] { pan(step); });
    add(tr("Frame earlier by its width"), {Qt::Key_PageUp}, [this] { pan(-1); });
    add(tr("Frame later by its width"), {Qt::Key_PageDown}, [this] { pan(1); });
    add(tr("Frame to the beginning"), {Qt::Key_Home}, [this] { beginAt(stripAxis().start); });
    add(tr("Frame to the end"), {Qt::Key_End}, [this] { beginAt(stripAxis().end()); });
    const auto zoom = [this](double factor) {
        m_timeline.zoomBy(factor, m_timeline.axis().left + m_timeline.axis().width / 2.0);
    };
    add(tr("Frame narrower"), {Qt::Key_Plus, Qt::Key_W}, [zoom] { zoom(1.25); });
    add(tr("Frame wider"), {Qt::Key_Minus, Qt::Key_S}, [zoom] { zoom(0.8); });
    add(tr("Left edge of the frame earlier"), {Qt::CTRL | Qt::Key_Left}, [this] { nudgeEdge(Grip::Left, -step); });
    add(tr("Left edge of the frame later"), {Qt::CTRL | Qt::Key_Right}, [this] { nudgeEdge(Grip::Left, step); });
    add(tr("Right edge of the frame earlier"), {Qt::SHIFT | Qt::Key_Left}, [this] { nudgeEdge(Grip::Right, -step); });
    add(tr("Right edge of the frame later"), {Qt::SHIFT | Qt::Key_Right}, [this] { nudgeEdge(Grip::Right, step); });
    add(tr("Frame around everything"), {Qt::Key_0, Qt::Key_F}, [this] { m_timeline.showAll(); });
}

void Minimap::pan(double share)
{
    m_timeline.setAxis(panned(m_timeline.axis(), share * m_timeline.axis().width));
}

void Minimap::beginAt(double time)
{
    TimeAxis axis = m_timeline.axis();
    axis.start = time;
    m_timeline.setAxis(axis);
}

void Minimap::nudgeEdge(Grip side, double share)
{
    const TimeAxis& now = m_timeline.axis();
    moveEdge(side, (side == Grip::Left ? now.start : now.end()) + share * now.width * now.nsPerPixel);
}

void Minimap::moveEdge(Grip side, double time)
{
    const TimeAxis now = m_timeline.axis();
    // Limited to the margin beside the schedule, in pixels at the new scale: beyond it, clamping would move the other
    // edge.
    const double room = std::max(1, now.width - margin);
    const double earliest = -margin * now.end() / room;
    const double latest = (static_cast<double>(m_timeline.total()) * now.width - margin * now.start) / room;
    const double from = side == Grip::Left ? std::max(time, earliest) : now.start;
    const double to = side == Grip::Right ? std::min(time, latest) : now.end();
    m_timeline.setAxis(fitted(now, from, to));
}

void Minimap::describe()
{
    const auto [start, end] = m_timeline.timeRange();
    setAccessibleDescription(tr("The whole schedule, %1 long; the frame is around what the timeline shows, %2 to %3")
                                 .arg(durationText(m_timeline.total()), timeText(start, m_timeline.axis().nsPerPixel),
                                      timeText(end, m_timeline.axis().nsPerPixel)));
}

void Minimap::drop()
{
    m_picture = {};
    update();
}

TimeAxis Minimap::stripAxis() const
{
    TimeAxis axis;
    axis.left = TimelineView::plotLeft();
    axis.width = m_timeline.plotWidth();
    return fitted(axis, 0, static_cast<double>(std::max<Nanoseconds>(1, m_timeline.total())), margin);
}

QRect Minimap::frame() const
{
    const TimeAxis axis = stripAxis();
    const auto at = [&axis](double time) {
        return static_cast<int>(std::lround(std::clamp(axis.xOf(time), double(axis.left), double(axis.right()))));
    };
    const int left = at(m_timeline.axis().start);
    const int right = std::max(left + narrowest, at(m_timeline.axis().end()));
    return {left, 1, right - left, height() - 3};
}

OverviewRows Minimap::rows() const
{
    return OverviewRows(m_timeline, {0, inset, width(), height() - 2 * inset - 1});
}

void Minimap::fitHeight()
{
    const int devices = m_timeline.document().design().schedule.devices();
    setFixedHeight(std::max(stripHeight, std::min(devices, mostRows) + 2 * inset + 1));
}

void Minimap::render()
{
    const Theme& theme = Theme::of(*this);
    const double scale = devicePixelRatioF();
    m_picture = QPixmap(QSize(static_cast<int>(width() * scale), static_cast<int>(height() * scale)));
    m_picture.setDevicePixelRatio(scale);
    m_picture.fill(theme.background);
    QPainter painter(&m_picture);
    rows().paint(painter, stripAxis(), theme, scale);
}

void Minimap::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    if (m_picture.isNull()
        || m_picture.size()
               != QSize(static_cast<int>(width() * devicePixelRatioF()),
                        static_cast<int>(height() * devicePixelRatioF())))
        render();
    QPainter painter(this);
    painter.drawPixmap(0, 0, m_picture);
    const QRect window = frame();
    QColor veil = theme.background;
    veil.setAlphaF(0.6f);
    const int left = TimelineView::plotLeft();
    painter.fillRect(QRect(left, 0, window.left() - left, height() - 1), veil);
    painter.fillRect(QRect(window.right() + 1, 0, width() - window.right() - 1, height() - 1), veil);
    if (const auto range = m_timeline.range()) {
        const TimeAxis axis = stripAxis();
        const double from = axis.xOf(static_cast<double>(range->first)),
                     to = axis.xOf(static_cast<double>(range->second));
        QColor wash = theme.accent;
        wash.setAlphaF(0.14f);
        painter.fillRect(QRectF(from, 0, to - from, height() - 1), wash);
        for (const double x : {from, to})
            painter.fillRect(QRectF(std::floor(x), 0, 1, height() - 1), theme.accent);
    }
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme.accent, hasFocus() ? 2 : 1));
    const double half = hasFocus() ? 1 : 0.5;
    painter.drawRoundedRect(QRectF(window).adjusted(half, half, -half, -half), Theme::blockRadius, Theme::blockRadius);
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(hasFocus() ? theme.text : theme.dim);
    painter.drawText(QRect(18, 0, OverviewRows::barsLeft - 18, height() - 1), Qt::AlignLeft | Qt::AlignVCenter,
                     tr("overview"));
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.fillRect(QRect(0, height() - 1, width(), 1), theme.hairline);
    if (hasFocus()) {
        painter.setPen(theme.accent);
        painter.drawRect(QRect(0, 0, width() - 1, height() - 1));
    }
}

bool Minimap::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString numbers = rows().textAt(help->pos().y());
    // The numbers of a row. At the left, beside the strip's name, the tool tip explains how the strip is used.
    QToolTip::showText(help->globalPos(),
                       numbers.isEmpty() || help->pos().x() < OverviewRows::barsLeft ? toolTip() : numbers, this);
    return true;
}

Nanoseconds Minimap::timeAt(double x) const
{
    return std::clamp<Nanoseconds>(std::llround(stripAxis().timeAt(x)), 0, m_timeline.total());
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
    if (event->modifiers() & Qt::ShiftModifier) {
        m_grip = Grip::Range;
        m_from = timeAt(event->position().x());
        return;
    }
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
        if (event->modifiers() & Qt::ShiftModifier)
            return setCursor(Qt::CrossCursor);
        setCursor(grip == Grip::None ? Qt::ArrowCursor : grip == Grip::Frame ? Qt::OpenHandCursor : Qt::SizeHorCursor);
        return;
    }
    if (m_grip == Grip::Range)
        return m_timeline.setRange(std::pair(m_from, timeAt(x)));
    const TimeAxis axis = stripAxis();
    const TimeAxis now = m_timeline.axis();
    if (m_grip == Grip::Frame)
        return beginAt(axis.timeAt(x - m_offset));
    // At least a pixel of the strip stays visible.
    const double time = axis.timeAt(x);
    moveEdge(m_grip, m_grip == Grip::Left ? std::min(time, now.end() - axis.nsPerPixel)
                                          : std::max(time, now.start + axis.nsPerPixel));
}

void Minimap::mouseReleaseEvent(QMouseEvent* event)
{
    if (m_grip == Grip::Range && timeAt(event->position().x()) == m_from)
        m_timeline.setRange(std::nullopt); // a click, as on the ruler
    m_grip = Grip::None;
}

void Minimap::mouseDoubleClickEvent(QMouseEvent*)
{
    m_grip = Grip::None;
    m_timeline.showAll();
}

void Minimap::focusInEvent(QFocusEvent* event)
{
    QWidget::focusInEvent(event);
    update();
}

void Minimap::focusOutEvent(QFocusEvent* event)
{
    QWidget::focusOutEvent(event);
    update();
}

} // namespace pipewright

#include "moc_minimap.cpp"
