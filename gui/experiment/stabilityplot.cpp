// SPDX-License-Identifier: GPL-3.0-or-later
// Samples largestStableRate() at 61 momenta and draws both lines on a logarithmic axis.
#include "gui/experiment/stabilityplot.h"

#include "core/predict/stability.h"
#include "gui/widgets/theme.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {
constexpr QMargins stabilityMargins(56, 26, 20, 36);
constexpr double highestMomentum = 0.98;
constexpr double lowestRate = 0.001, highestRate = 10; ///< a logarithmic axis
} // namespace

StabilityPlot::StabilityPlot(QWidget* parent) : QWidget(parent)
{
    setAccessibleName(tr("Largest stable learning rate against momentum"));
    setMinimumSize(320, 220);
}

void StabilityPlot::setPolicy(int staleness, int steps)
{
    if (staleness == m_staleness && steps == m_steps)
        return;
    m_staleness = staleness;
    m_steps = steps;
    m_points.clear();
    constexpr int count = 60;
    for (int i = 0; i <= count; ++i) {
        const double momentum = highestMomentum * i / count;
        m_points.push_back(
            {momentum, largestStableRate(momentum, staleness, steps), largestStableRate(momentum, staleness, 0)});
    }
    update();
}

void StabilityPlot::setPresent(double momentum, double learningRate)
{
    m_momentum = momentum;
    m_rate = learningRate;
    update();
}

void StabilityPlot::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF plot = QRectF(rect()).marginsRemoved(stabilityMargins);
    painter.fillRect(plot, theme.lane);
    const auto x = [&](double momentum) { return plot.left() + plot.width() * momentum / highestMomentum; };
    const auto y = [&](double rate) {
        const double share =
            std::log(std::clamp(rate, lowestRate, highestRate) / lowestRate) / std::log(highestRate / lowestRate);
        return plot.bottom() - plot.height() * share;
    };
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.dim);
    painter.drawText(QPointF(plot.left(), plot.top() - 10),
                     tr("largest stable learning rate, staleness %1").arg(std::max(0, m_staleness)));
    painter.drawText(QRectF(plot.right() - 120, plot.bottom() + 18, 120, 16), Qt::AlignRight, tr("momentum"));
    painter.setFont(Theme::numbers(TextSize::Small));
    for (double rate = lowestRate; rate <= highestRate * 1.01; rate *= 10) {
        painter.setPen(theme.hairline);
        painter.drawLine(QPointF(plot.left(), y(rate)), QPointF(plot.right(), y(rate)));
        painter.setPen(theme.dim);
        painter.drawText(QRectF(0, y(rate) - 8, plot.left() - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                         QString::number(rate));
    }
    for (const double momentum : {0.0, 0.25, 0.5, 0.75, 0.9})
        painter.drawText(QRectF(x(momentum) - 20, plot.bottom() + 2, 40, 16), Qt::AlignCenter,
                         QString::number(momentum));
    if (m_points.empty())
        return;

    const auto line = [&](double Point::*rate, const QPen& pen) {
        QPainterPath path;
        for (const Point& point : m_points)
            path.elementCount() == 0 ? path.moveTo(x(point.momentum), y(point.*rate))
                                     : path.lineTo(x(point.momentum), y(point.*rate));
        painter.setPen(pen);
        painter.drawPath(path);
    };
    line(&Point::plain, QPen(theme.dim, 1.5, Qt::DashLine));
    if (m_steps > 0)
        line(&Point::predicted, QPen(theme.accent, 2));
    // The legend is in the upper corner, free of lines, since limits fall with momentum.
    double top = plot.top() + 12;
    const auto entry = [&](const QString& text, const QPen& pen) {
        painter.setPen(pen);
        painter.drawLine(QPointF(plot.right() - 176, top), QPointF(plot.right() - 150, top));
        painter.setPen(theme.text);
        painter.setFont(Theme::words(TextSize::Small));
        painter.drawText(QRectF(plot.right() - 144, top - 9, 144, 18), Qt::AlignLeft | Qt::AlignVCenter, text);
        top += 18;
    };
    if (m_steps > 0)
        entry(tr("predicted by %1").arg(m_steps), QPen(theme.accent, 2));
    entry(tr("not predicted"), QPen(theme.dim, 1.5, Qt::DashLine));

    const QPointF present(x(std::min(m_momentum, highestMomentum)), y(m_rate));
    const bool stable = m_staleness < 0 || isStable(m_rate, m_momentum, m_staleness, m_steps);
    painter.setPen(QPen(stable ? theme.good : theme.bad, 2));
    painter.drawLine(present - QPointF(6, 0), present + QPointF(6, 0));
    painter.drawLine(present - QPointF(0, 6), present + QPointF(0, 6));
    entry(stable ? tr("here: it settles") : tr("here: it runs away"), QPen(stable ? theme.good : theme.bad, 2));
}

} // namespace pipewright

#include "moc_stabilityplot.cpp"
