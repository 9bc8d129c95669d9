// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/runplot.h"

#include "gui/widgets/theme.h"

#include <QPainter>
#include <QPolygonF>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int plotTop = 20, plotBottom = 16, plotSide = 6;

} // namespace

RunPlot::RunPlot(const QString& name, std::function<QString(double)> write, bool fromZero, QWidget* parent)
    : QWidget(parent), m_name(name), m_write(std::move(write)), m_fromZero(fromZero)
{
    setAccessibleName(name);
}

void RunPlot::clear(int steps)
{
    m_values.clear();
    m_steps = std::max(1, steps);
    m_seen = 0;
    update();
}

void RunPlot::append(double value)
{
    ++m_seen;
    m_steps = std::max(m_steps, m_seen);
    if (std::isfinite(value))
        m_values.emplace_back(m_seen, value);
    setAccessibleDescription(last());
    update();
}

QString RunPlot::last() const
{
    return m_values.empty() ? QString() : m_write(m_values.back().second);
}

std::pair<double, double> RunPlot::bounds() const
{
    const auto [low, high] = std::minmax_element(m_values.begin(), m_values.end(),
                                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    const double least = m_fromZero ? std::min(0.0, low->second) : low->second;
    return {least, std::max(high->second, least + std::max(1e-12, std::abs(least) * 1e-9))};
}

QStringList RunPlot::axisTexts() const
{
    if (m_values.empty())
        return {};
    const auto [low, high] = bounds();
    return {m_write(low), m_write(high), QStringLiteral("1"), QString::number(m_steps)};
}

void RunPlot::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.dim);
    painter.drawText(QRect(plotSide, 0, width() - 2 * plotSide, plotTop), Qt::AlignLeft | Qt::AlignVCenter, m_name);
    painter.setFont(Theme::numbers(TextSize::Small));
    painter.setPen(theme.text);
    painter.drawText(QRect(plotSide, 0, width() - 2 * plotSide, plotTop), Qt::AlignRight | Qt::AlignVCenter, last());

    const QStringList texts = axisTexts();
    int left = plotSide;
    const QFontMetrics metrics(Theme::numbers(TextSize::Small));
    for (const QString& text : texts.mid(0, 2))
        left = std::max(left, plotSide + metrics.horizontalAdvance(text) + 6);
    const QRectF plot(left, plotTop, std::max(10, width() - left - plotSide), height() - plotTop - plotBottom);
    painter.setPen(theme.hairline);
    painter.drawLine(plot.bottomLeft(), plot.bottomRight());
    painter.drawLine(plot.topLeft(), plot.bottomLeft());
    if (texts.isEmpty())
        return;
    painter.setPen(theme.dim);
    painter.drawText(QRectF(0, plot.bottom() - 12, left - 6, 12), Qt::AlignRight | Qt::AlignVCenter, texts[0]);
    painter.drawText(QRectF(0, plot.top() - 2, left - 6, 12), Qt::AlignRight | Qt::AlignVCenter, texts[1]);
    painter.drawText(QRectF(plot.left(), plot.bottom() + 1, 60, plotBottom), Qt::AlignLeft | Qt::AlignTop, texts[2]);
    painter.drawText(QRectF(plot.right() - 120, plot.bottom() + 1, 120, plotBottom), Qt::AlignRight | Qt::AlignTop,
                     tr("step %1").arg(texts[3]));

    const auto [low, high] = bounds();
    const auto most = static_cast<std::size_t>(std::max(2.0, plot.width() * 2));
    const std::size_t stride = std::max<std::size_t>(1, m_values.size() / most);
    QPolygonF line;
    for (std::size_t i = 0; i < m_values.size(); i += stride)
        line << QPointF(plot.left() + plot.width() * (m_values[i].first - 1) / std::max(1, m_steps - 1),
                        plot.bottom() - plot.height() * (m_values[i].second - low) / (high - low));
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme.accent, 1.5));
    painter.setBrush(theme.accent);
    if (line.size() == 1)
        painter.drawEllipse(line.front(), 2, 2);
    else
        painter.drawPolyline(line);
}

} // namespace pipewright

#include "moc_runplot.cpp"
