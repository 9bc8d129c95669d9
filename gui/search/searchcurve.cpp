// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/search/searchcurve.h"

#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int labelWidth = 124;

} // namespace

SearchCurve::SearchCurve(QWidget* parent) : QWidget(parent)
{
    setAccessibleName(tr("Best time found and lower bound"));
    setMinimumHeight(120);
}

void SearchCurve::clear(Nanoseconds present)
{
    m_points.clear();
    m_present = present;
    setAccessibleDescription({});
    update();
}

void SearchCurve::append(const Point& point)
{
    const std::size_t count = m_points.size();
    const bool same = count >= 2 && m_points[count - 1].best == point.best && m_points[count - 1].bound == point.bound
                      && m_points[count - 2].best == point.best && m_points[count - 2].bound == point.bound;
    if (same)
        m_points.back().seconds = point.seconds;
    else
        m_points.push_back(point);
    setAccessibleDescription(
        tr("best %1, bound %2")
            .arg(point.best > 0 ? durationText(point.best) : tr("none yet"), durationText(point.bound)));
    update();
}

void SearchCurve::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF frame = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
    painter.setPen(theme.hairline);
    painter.setBrush(theme.lane);
    painter.drawRoundedRect(frame, Theme::blockRadius, Theme::blockRadius);
    painter.setFont(Theme::numbers(TextSize::Small));
    if (m_points.empty()) {
        painter.setFont(Theme::words(TextSize::Small));
        painter.setPen(theme.dim);
        painter.drawText(frame, Qt::AlignCenter, tr("The best time found, and below it what no order can beat"));
        return;
    }
    const QRectF plot = frame.adjusted(10, 14, -labelWidth, -20);
    const Point last = m_points.back();
    double low = static_cast<double>(last.bound), high = static_cast<double>(std::max(m_present, last.bound));
    for (const Point& point : m_points) {
        high = std::max(high, static_cast<double>(point.best));
        low = point.bound > 0 ? std::min(low, static_cast<double>(point.bound)) : low;
    }
    if (high <= low) { // nothing was left to find: one line amid the plot
        constexpr double around = 0.01;
        low *= 1 - around;
        high *= 1 + around;
    }
    const double span = std::max(1.0, high - low), seconds = std::max(1e-3, last.seconds);
    const auto x = [&](double s) { return plot.left() + plot.width() * s / seconds; };
    const auto y = [&](Nanoseconds v) { return plot.bottom() - plot.height() * (static_cast<double>(v) - low) / span; };

    QPainterPath best, bound, gap;
    for (std::size_t i = 0; i < m_points.size(); ++i) {
        const Point& point = m_points[i];
        const double from = x(point.seconds), until = i + 1 < m_points.size() ? x(m_points[i + 1].seconds) : x(seconds);
        const auto step = [&](QPainterPath& path, Nanoseconds value) {
            path.isEmpty() ? path.moveTo(from, y(value)) : path.lineTo(from, y(value));
            path.lineTo(until, y(value));
        };
        if (point.best > 0) {
            step(best, point.best);
            gap.addRect(QRectF(QPointF(from, y(point.best)), QPointF(until, y(point.bound))));
        }
        step(bound, point.bound);
    }
    painter.fillPath(gap, QBrush(theme.idle, Qt::BDiagPattern));
    painter.setBrush(Qt::NoBrush);
    if (m_present > 0) {
        painter.setPen(QPen(theme.dim, 1, Qt::DotLine));
        painter.drawLine(QPointF(plot.left(), y(m_present)), QPointF(plot.right(), y(m_present)));
    }
    painter.setPen(QPen(theme.good, 1.5, Qt::DashLine));
    painter.drawPath(bound);
    painter.setPen(QPen(theme.accent, 2));
    painter.drawPath(best);

    // Labels at the right end in this order from the top, moved apart where they would overlap.
    const int height = painter.fontMetrics().height();
    struct Label {
        double y;
        QString text;
        QColor colour;
    };
    std::vector<Label> labels;
    if (m_present > 0)
        labels.push_back({y(m_present), tr("now %1").arg(durationText(m_present)), theme.dim});
    if (last.best > 0 && last.best != m_present)
        labels.push_back({y(last.best), tr("best %1").arg(durationText(last.best)), theme.accent});
    if (last.bound > 0)
        labels.push_back({y(last.bound), tr("bound %1").arg(durationText(last.bound)), theme.good});
    double next = 0;
    for (const Label& label : labels) {
        const double top =
            std::min(std::max(label.y - height / 2.0, next), frame.bottom() - height * double(labels.size()) + next);
        painter.setPen(label.colour);
        painter.drawText(QRectF(plot.right() + 8, top, labelWidth - 12, height), Qt::AlignLeft | Qt::AlignVCenter,
                         label.text);
        next = top + height;
    }
    painter.setPen(theme.dim);
    painter.drawText(QRectF(plot.left(), plot.bottom() + 2, plot.width(), height), Qt::AlignLeft, tr("0 s"));
    painter.drawText(QRectF(plot.left(), plot.bottom() + 2, plot.width(), height), Qt::AlignRight,
                     durationText(std::llround(seconds * 1e9)));
    if (last.best > 0 && last.best == last.bound) {
        painter.setFont(Theme::words(TextSize::Small));
        painter.drawText(QRectF(plot.left(), plot.top(), plot.width(), height), Qt::AlignCenter,
                         tr("The best order meets the bound: none is shorter"));
    }
}

} // namespace pipewright

#include "moc_searchcurve.cpp"
