// SPDX-License-Identifier: GPL-3.0-or-later
// Scales points to round ticks and draws the front as steps. O(points log points).
#include "gui/search/tradeoffplot.h"

#include "gui/widgets/chart.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QKeyEvent>
#include <QLineF>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int leftMargin = 64, topMargin = 16, rightMargin = 24, bottomMargin = 44;
constexpr double radius = 4.5;
constexpr double reach = 12;          ///< pixels within which a point is hit
constexpr double closest = 1.0 / 400; ///< the least visible share of the whole range of an axis

/// The smallest of 1, 2, 5 x 10^n that is at least `least`.
double roundStep(double least)
{
    const double decade = std::pow(10.0, std::floor(std::log10(std::max(least, 1e-12))));
    for (const double mantissa : {1.0, 2.0, 5.0})
        if (mantissa * decade >= least)
            return mantissa * decade;
    return 10 * decade;
}

/// With some room around the points. `fromZero`: both axes begin there.
QRectF wholeRange(const std::vector<QPointF>& points, bool fromZero)
{
    QRectF range;
    if (!points.empty())
        range = {points.front(), points.front()};
    for (const QPointF& point : points) {
        range.setLeft(std::min(range.left(), point.x()));
        range.setRight(std::max(range.right(), point.x()));
        range.setTop(std::min(range.top(), point.y()));
        range.setBottom(std::max(range.bottom(), point.y()));
    }
    if (fromZero)
        return {0, 0, std::max(range.right(), 1e-9) * 1.08, std::max(range.bottom(), 0.01) * 1.1};
    const double width = std::max({range.width(), 0.02 * range.right(), 1e-9});
    const double height = std::max({range.height(), 0.02 * range.bottom(), 1e-9});
    const double left = std::max(0.0, range.left() - 0.08 * width), top = std::max(0.0, range.top() - 0.1 * height);
    return {left, top, range.left() + 1.12 * width - left, range.top() + 1.12 * height - top};
}

} // namespace

TradeOffPlot::TradeOffPlot(Value value, QWidget* parent) : QWidget(parent), m_value(value), m_chart(new Chart(this))
{
    onThemeChange(this, [this] { refresh(); });
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(value == Value::Bubble ? tr("Peak memory against bubble") : tr("Peak memory against step"));
    setToolTip(tr("The wheel zooms, dragging the ground moves, Home shows all; a click on a point takes it"));
    setMinimumSize(360, 260);
    m_chart->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_chart->setPlotMargins(leftMargin, topMargin, rightMargin, bottomMargin);
    m_chart->setForeground([this](QPainter& painter) { paint(painter); });
}

void TradeOffPlot::makeSmall()
{
    m_small = true;
    setMinimumSize(120, 104);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    setToolTip({});
    m_chart->setPlotMargins(8, 8, 8, 18);
}

QString TradeOffPlot::memoryText(double memory) const
{
    return m_inBytes ? sizeText(static_cast<Bytes>(memory)) : multipleText(memory);
}

QString TradeOffPlot::valueText(double value) const
{
    return m_value == Value::Bubble
               ? percentText(value)
               : durationText(static_cast<Nanoseconds>(value), static_cast<Nanoseconds>(m_whole.bottom()));
}

void TradeOffPlot::setPoints(std::vector<Point> points, bool inBytes)
{
    m_points = std::move(points);
    m_inBytes = inBytes;
    if (m_current >= static_cast<int>(m_points.size()))
        m_current = -1;
    refresh();
}

void TradeOffPlot::setPresent(std::optional<QPointF> present, Bytes limit)
{
    m_present = present;
    m_limit = limit;
    refresh();
}

void TradeOffPlot::setCurrent(int point)
{
    if (point == m_current)
        return;
    m_current = point;
    m_chart->setForeground([this](QPainter& painter) { paint(painter); });
    Q_EMIT currentChanged(point);
}

void TradeOffPlot::refresh()
{
    std::vector<QPointF> all;
    for (const Point& point : m_points)
        if (point.possible)
            all.emplace_back(point.memory, point.value);
    if (m_present)
        all.push_back(*m_present);
    m_whole = wholeRange(all, m_value == Value::Bubble && !m_small); // a small one needs all its room
    if (m_all)
        m_shown = m_whole;
    m_chart->clear();
    m_chart->setRange(m_shown.left(), m_shown.right(), m_shown.top(), m_shown.bottom());

    std::vector<QPointF> front;
    for (const Point& point : m_points)
        if (point.onFront)
            front.emplace_back(point.memory, point.value);
    std::sort(front.begin(), front.end(), [](const QPointF& a, const QPointF& b) { return a.x() < b.x(); });
    if (!front.empty()) {
        // The front as steps: the value is constant up to the next point that has less.
        std::vector<QPointF> steps{{front.front().x(), m_whole.bottom()}};
        for (const QPointF& point : front) {
            if (point.y() >= steps.back().y())
                continue; // no improvement over the last point
            steps.emplace_back(point.x(), steps.back().y());
            steps.push_back(point);
        }
        steps.emplace_back(m_whole.right(), steps.back().y());
        m_chart->addLine(steps, Theme::of(*this).accent, 1.2);
    }
    m_chart->setForeground([this](QPainter& painter) { paint(painter); });
}

QPointF TradeOffPlot::positionOf(int point) const
{
    const Point& p = m_points[point];
    return {m_chart->xOf(p.memory), m_chart->yOf(p.value)};
}

int TradeOffPlot::pointAt(QPointF position) const
{
    int best = -1;
    double nearest = reach;
    for (int i = 0; i < static_cast<int>(m_points.size()); ++i) {
        if (!m_points[i].possible || !m_chart->plotArea().contains(positionOf(i)))
            continue;
        const QPointF distance = positionOf(i) - position;
        if (const double length = std::hypot(distance.x(), distance.y()); length < nearest) {
            nearest = length;
            best = i;
        }
    }
    return best;
}

void TradeOffPlot::setShown(const QRectF& range)
{
    // Limits the zoom between a least visible range and the whole range.
    const double width = std::clamp(range.width(), closest * m_whole.width(), m_whole.width());
    const double height = std::clamp(range.height(), closest * m_whole.height(), m_whole.height());
    const auto within = [](double from, double least, double most) {
        return std::min(std::max(from, least), std::max(least, most));
    };
    m_shown = {within(range.left(), m_whole.left(), m_whole.right() - width),
               within(range.top(), m_whole.top(), m_whole.bottom() - height), width, height};
    m_all = width >= m_whole.width() && height >= m_whole.height();
    refresh();
}

void TradeOffPlot::zoomBy(double factor, QPointF around)
{
    const QRectF plot = m_chart->plotArea();
    const double x = m_shown.left() + (around.x() - plot.left()) / plot.width() * m_shown.width();
    const double y = m_shown.bottom() - (around.y() - plot.top()) / plot.height() * m_shown.height();
    setShown({x - (x - m_shown.left()) / factor, y - (y - m_shown.top()) / factor, m_shown.width() / factor,
              m_shown.height() / factor});
}

void TradeOffPlot::panBy(QPointF pixels)
{
    const QRectF plot = m_chart->plotArea();
    setShown(m_shown.translated(-pixels.x() / plot.width() * m_shown.width(),
                                pixels.y() / plot.height() * m_shown.height()));
}

void TradeOffPlot::showAll()
{
    setShown(m_whole);
}

QRectF TradeOffPlot::valueCaption() const
{
    const QRectF plot = m_chart->plotArea();
    return {plot.left() + 6, plot.top() - 2, 60, 16};
}

std::vector<TradeOffPlot::Name> TradeOffPlot::namesOnFront() const
{
    if (m_small)
        return {};
    const QFontMetricsF metrics(Theme::words(TextSize::Small));
    const QRectF plot = m_chart->plotArea();
    std::vector<int> front;
    for (int i = 0; i < static_cast<int>(m_points.size()); ++i)
        if (isOnFront(i))
            front.push_back(i);
    std::stable_sort(front.begin(), front.end(),
                     [this](int a, int b) { return m_points[a].memory < m_points[b].memory; });
    std::vector<QRectF> taken{valueCaption()};
    for (const int i : front)
        taken.emplace_back(positionOf(i) - QPointF(radius, radius), QSizeF(2 * radius, 2 * radius));
    std::vector<Name> names;
    std::vector<bool> named(m_points.size(), false);
    for (const int i : front) {
        if (named[i] || !plot.contains(positionOf(i)))
            continue;
        int alike = 0;
        for (const int other : front)
            if (other == i || (!named[other] && QLineF(positionOf(i), positionOf(other)).length() < radius)) {
                named[other] = true;
                ++alike;
            }
        QString text = m_points[i].name;
        if (alike > 1)
            text = tr("%1 and %n more", "", alike - 1).arg(text);
        const QSizeF size(metrics.horizontalAdvance(text) + 4, metrics.height());
        const QPointF at = positionOf(i);
        // Prefer places away from the front's line.
        const QPointF corners[] = {{at.x() + radius + 3, at.y() - size.height() - 1},
                                   {at.x() - radius - 3 - size.width(), at.y() + 1},
                                   {at.x() + radius + 3, at.y() + 2},
                                   {at.x() - radius - 3 - size.width(), at.y() - size.height() - 1}};
        for (const QPointF& corner : corners) {
            const QRectF place(corner, size);
            const bool free = plot.contains(place)
                              && std::none_of(taken.begin(), taken.end(),
                                              [&](const QRectF& other) { return other.intersects(place); });
            if (!free)
                continue;
            taken.push_back(place);
            names.push_back({text, place});
            break;
        }
    }
    return names;
}

void TradeOffPlot::paintAxes(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    const QRectF plot = m_chart->plotArea();
    if (m_small) {
        painter.fillRect(QRectF(plot.left(), plot.bottom(), plot.width(), 1), theme.hairline);
        painter.fillRect(QRectF(plot.left(), plot.top(), 1, plot.height()), theme.hairline);
        return;
    }
    painter.setFont(Theme::numbers(TextSize::Small));
    painter.setPen(theme.dim);
    if (m_points.empty() && m_value == Value::Step)
        return; // there is no range yet
    const double valueStep = roundStep(m_shown.height() / std::max(1.0, plot.height() / 48));
    for (double value = std::ceil(m_shown.top() / valueStep) * valueStep; value <= m_shown.bottom();
         value += valueStep) {
        const double y = m_chart->yOf(value);
        painter.fillRect(QRectF(plot.left(), y, plot.width(), 1), theme.hairline);
        painter.drawText(QRectF(0, y - (value == 0 ? 12 : 8), leftMargin - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                         valueText(value));
    }
    // Bytes step by powers of two, so that ticks are whole.
    const double wanted = m_shown.width() / std::max(1.0, plot.width() / 92);
    const double memoryStep =
        m_inBytes ? std::pow(2.0, std::ceil(std::log2(std::max(1.0, wanted)))) : roundStep(wanted);
    for (double memory = std::ceil(m_shown.left() / memoryStep) * memoryStep; memory <= m_shown.right();
         memory += memoryStep) {
        const double x = m_chart->xOf(memory);
        painter.fillRect(QRectF(x, plot.bottom(), 1, 5), theme.dim);
        // The first label starts at its tick, to avoid the other axis's zero.
        const QRectF below(memory == 0 ? x : x - 46, plot.bottom() + 6, 92, 16);
        painter.drawText(below, (memory == 0 ? Qt::AlignLeft : Qt::AlignHCenter) | Qt::AlignTop, memoryText(memory));
    }
    painter.setFont(Theme::words(TextSize::Small));
    painter.drawText(QRectF(plot.left(), plot.bottom() + 24, plot.width(), 16), Qt::AlignRight | Qt::AlignVCenter,
                     tr("peak memory of the fullest device →"));
    painter.drawText(valueCaption(), Qt::AlignLeft | Qt::AlignVCenter,
                     m_value == Value::Bubble ? tr("↑ bubble") : tr("↑ step"));
}

void TradeOffPlot::paint(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    const QRectF plot = m_chart->plotArea();
    paintAxes(painter);
    painter.setRenderHint(QPainter::Antialiasing);
    if (m_limit > 0 && m_inBytes && double(m_limit) <= m_shown.right() && double(m_limit) >= m_shown.left()) {
        const double x = m_chart->xOf(double(m_limit));
        painter.setPen(QPen(theme.bad, 1, Qt::DashLine));
        painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
        painter.setFont(Theme::words(TextSize::Small));
        const QString limit = tr("limit %1").arg(sizeText(m_limit));
        const double width = painter.fontMetrics().horizontalAdvance(limit);
        QRectF caption(x - width - 4, m_small ? plot.bottom() + 2 : plot.top(), width, 16);
        if (!m_small && caption.left() < valueCaption().right()) // right of the line, clear of the axis' name
            caption.moveLeft(std::max(x + 4, valueCaption().right() + 4));
        if (!m_small || caption.left() > plot.left())
            painter.drawText(caption, Qt::AlignLeft | Qt::AlignVCenter, limit);
    }
    painter.save();
    painter.setClipRect(plot.adjusted(-radius, -radius, radius, radius));
    for (int i = 0; i < static_cast<int>(m_points.size()); ++i) {
        if (!m_points[i].possible)
            continue;
        const bool front = isOnFront(i);
        painter.setPen(QPen(theme.background, 1));
        const bool over = m_inBytes && m_limit > 0 && m_points[i].memory > double(m_limit);
        painter.setBrush(over ? theme.bad : front ? theme.accent : theme.dim);
        painter.drawEllipse(positionOf(i), front ? radius : radius - 1, front ? radius : radius - 1);
    }
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.text);
    QColor ground = theme.panel; // translucent: what is below stays visible, but the text is legible
    ground.setAlphaF(0.8f);
    for (const Name& name : namesOnFront()) {
        painter.fillRect(name.place, ground);
        painter.drawText(name.place, Qt::AlignCenter, name.text);
    }
    painter.setBrush(Qt::NoBrush);
    if (m_present) {
        painter.setPen(QPen(theme.selection, 1.5));
        const double ring = radius + (m_small ? 2 : 4);
        painter.drawEllipse(QPointF(m_chart->xOf(m_present->x()), m_chart->yOf(m_present->y())), ring, ring);
    }
    painter.restore();
    if (m_current >= 0 && m_points[m_current].possible && plot.contains(positionOf(m_current)))
        paintLabel(painter);
}

void TradeOffPlot::paintLabel(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    const QRectF plot = m_chart->plotArea();
    const Point& point = m_points[m_current];
    const QPointF at = positionOf(m_current);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.accent, 2));
    painter.drawEllipse(at, radius + 2.5, radius + 2.5);
    const QString text =
        m_small ? point.name : tr("%1 · %2 · %3").arg(point.name, memoryText(point.memory), valueText(point.value));
    painter.setFont(Theme::words(m_small ? TextSize::Small : TextSize::Normal, QFont::DemiBold));
    const double width = painter.fontMetrics().horizontalAdvance(text) + (m_small ? 10 : 20);
    QRectF label(at.x() + 12, at.y() - (m_small ? 24 : 32), width, m_small ? 17 : 24);
    label.moveLeft(std::clamp(label.left(), plot.left(), std::max(plot.left(), plot.right() - width)));
    label.moveTop(std::max(label.top(), plot.top()));
    painter.setPen(theme.hairline);
    painter.setBrush(theme.control);
    painter.drawRoundedRect(label, Theme::controlRadius, Theme::controlRadius);
    painter.setPen(theme.text);
    painter.drawText(label, Qt::AlignCenter, text);
}

void TradeOffPlot::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    m_chart->setGeometry(rect());
}

void TradeOffPlot::mouseMoveEvent(QMouseEvent* event)
{
    if (m_held) {
        panBy(event->position() - *m_held);
        m_held = event->position();
        return;
    }
    const int point = pointAt(event->position());
    setCursor(point >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
    if (point >= 0 || m_small)
        setCurrent(point);
}

void TradeOffPlot::mousePressEvent(QMouseEvent* event)
{
    const int point = event->button() == Qt::LeftButton ? pointAt(event->position()) : -1;
    if (point >= 0) {
        setCurrent(point);
        Q_EMIT taken(point);
    } else if (!m_small && (event->button() == Qt::LeftButton || event->button() == Qt::MiddleButton)) {
        m_held = event->position();
        setCursor(Qt::ClosedHandCursor);
    }
}

void TradeOffPlot::mouseReleaseEvent(QMouseEvent*)
{
    m_held.reset();
    setCursor(Qt::ArrowCursor);
}

void TradeOffPlot::leaveEvent(QEvent* event)
{
    QWidget::leaveEvent(event);
    if (m_small && !hasFocus())
        setCurrent(-1);
}

void TradeOffPlot::wheelEvent(QWheelEvent* event)
{
    if (m_small)
        return event->ignore();
    const double notches = event->angleDelta().y() / 120.0;
    zoomBy(std::pow(1.25, notches), event->position());
    event->accept();
}

void TradeOffPlot::keyPressEvent(QKeyEvent* event)
{
    const auto zooms = [](int key) {
        return key == Qt::Key_Plus || key == Qt::Key_Equal || key == Qt::Key_Minus || key == Qt::Key_Home
               || key == Qt::Key_0;
    };
    if (m_small && zooms(event->key()))
        return QWidget::keyPressEvent(event);
    int direction = 0;
    switch (event->key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        if (m_current >= 0)
            Q_EMIT taken(m_current);
        return;
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(1.25, m_chart->plotArea().center());
    case Qt::Key_Minus: return zoomBy(0.8, m_chart->plotArea().center());
    case Qt::Key_Home:
    case Qt::Key_0: return showAll();
    case Qt::Key_Right:
    case Qt::Key_Down: direction = 1; break;
    case Qt::Key_Left:
    case Qt::Key_Up: direction = -1; break;
    default: return QWidget::keyPressEvent(event);
    }
    // Points in order of memory, left to right.
    std::vector<int> order;
    for (int i = 0; i < static_cast<int>(m_points.size()); ++i)
        if (m_points[i].possible)
            order.push_back(i);
    if (order.empty())
        return;
    std::stable_sort(order.begin(), order.end(),
                     [this](int a, int b) { return m_points[a].memory < m_points[b].memory; });
    const auto now = std::find(order.begin(), order.end(), m_current);
    const auto last = static_cast<std::ptrdiff_t>(order.size()) - 1;
    const std::ptrdiff_t next = now == order.end()
                                    ? (direction > 0 ? 0 : last)
                                    : std::clamp<std::ptrdiff_t>(now - order.begin() + direction, 0, last);
    setCurrent(order[next]);
}

} // namespace pipewright

#include "moc_tradeoffplot.cpp"
