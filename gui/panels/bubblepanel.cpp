// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/panels/bubblepanel.h"

#include "gui/panels/chart.h"
#include "gui/panels/labels.h"
#include "gui/panels/words.h"

#include <QEvent>
#include <QLabel>
#include <QPainter>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int top = 24;
constexpr int captionLeft = 18;
constexpr int roomiestRow = 24;
constexpr int tallest = 210;
constexpr int legendWidth = 190;

} // namespace

BubblePanel::BubblePanel(QWidget* parent)
    : QWidget(parent)
    , m_chart(new Chart(this))
{
    setAccessibleName(tr("Causes of idle time per device"));
    makeHeading(tr("Bubbles"), this)->move(captionLeft, 2);
    m_chart->setForeground([this](QPainter& painter) { paintLabels(painter); });
    m_chart->lower();
}

void BubblePanel::showDesign(const Design& design, const Prediction* prediction)
{
    m_metrics = prediction ? prediction->metrics : Metrics{};
    const std::size_t before = m_names.size();
    m_names.clear();
    for (int d = 0; d < static_cast<int>(m_metrics.devices.size()); ++d)
        m_names.push_back(deviceLabel(design, d));
    if (m_names.size() != before)
        updateGeometry();
    refresh();
}

void BubblePanel::setPlot(int left, int width)
{
    m_plotLeft = left;
    m_plotWidth = width;
    refresh();
}

QSize BubblePanel::sizeHint() const
{
    const int rows = std::max<int>(5, static_cast<int>(m_names.size()));
    return {600, std::min(tallest, top + rows * roomiestRow + 10)};
}

QString BubblePanel::percentLabel(int device) const
{
    const auto index = static_cast<std::size_t>(device);
    if (m_metrics.makespan <= 0 || index >= m_metrics.devices.size())
        return {};
    return percentText(static_cast<double>(m_metrics.devices[index].idle) / static_cast<double>(m_metrics.makespan));
}

std::vector<BubblePanel::Cause> BubblePanel::causes() const
{
    const Theme& theme = Theme::of(*this);
    std::vector<Cause> causes{{tr("warm-up and cool-down"), theme.waiting, {}},
                              {tr("waits for gradient"), theme.fill(Op::I), {}},
                              {tr("waits for activation"), theme.fill(Op::F), {}},
                              {tr("transfer"), theme.bad, {}},
                              {tr("pins and reductions"), theme.fill(Op::U), {}}};
    const double whole = std::max<double>(1, static_cast<double>(m_metrics.makespan));
    for (const IdleCauses& idle : m_metrics.idleCauses) {
        const Nanoseconds parts[] = {idle.warmUp + idle.coolDown, idle.waitGradient, idle.waitActivation, idle.transfer, idle.other};
        for (std::size_t i = 0; i < causes.size(); ++i)
            causes[i].shares.push_back(static_cast<double>(parts[i]) / whole);
    }
    return causes;
}

void BubblePanel::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    m_chart->setGeometry(rect());
    refresh();
}

void BubblePanel::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        refresh();
}

void BubblePanel::refresh()
{
    const int rows = static_cast<int>(m_metrics.idleCauses.size());
    const int rowHeight = rows == 0 ? roomiestRow : std::clamp((height() - top - 4) / rows, 2, roomiestRow);
    const int plotHeight = rowHeight * std::max(1, rows);
    m_chart->setPlotMargins(m_plotLeft, top, std::max(0, width() - m_plotLeft - m_plotWidth), std::max(0, height() - top - plotHeight));
    if (rows == 0) {
        m_chart->clear();
    } else {
        std::vector<Chart::BarPart> parts;
        for (Cause& cause : causes())
            parts.push_back({cause.name, cause.color, std::move(cause.shares)});
        double longest = 0;
        for (int row = 0; row < rows; ++row) {
            double sum = 0;
            for (const Chart::BarPart& part : parts)
                sum += part.values[static_cast<std::size_t>(row)];
            longest = std::max(longest, sum);
        }
        m_chart->setStackedBars(parts, rows, rowHeight > 12 ? 0.62 : 0.8);
        // The longest bar leaves room for its percentage and the legend.
        const double share = std::clamp(1.0 - double(legendWidth + 120) / std::max(1, m_plotWidth), 0.3, 0.75);
        m_chart->setRange(0, std::max(longest, 0.001) / share, -0.5, rows - 0.5);
    }
    m_chart->setForeground([this](QPainter& painter) { paintLabels(painter); });
}

void BubblePanel::paintLabels(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    const std::vector<Cause> causes = this->causes();
    const QRectF area = m_chart->plotArea();
    const int rows = static_cast<int>(m_metrics.idleCauses.size());
    const double rowHeight = rows == 0 ? roomiestRow : area.height() / rows;
    const int every = std::max(1, static_cast<int>(14 / rowHeight + 0.999));
    for (int row = 0; row < rows; row += every) {
        const double middle = area.top() + (row + 0.5) * rowHeight;
        painter.setFont(Theme::words(TextSize::Small));
        painter.setPen(theme.dim);
        painter.drawText(QRectF(captionLeft, middle - 8, area.left() - captionLeft - 6, 16), Qt::AlignLeft | Qt::AlignVCenter,
                         m_names[static_cast<std::size_t>(row)]);
        double share = 0;
        for (const Cause& cause : causes)
            share += cause.shares[static_cast<std::size_t>(row)];
        painter.setFont(Theme::numbers(TextSize::Small));
        painter.drawText(QRectF(m_chart->xOf(share) + 8, middle - 8, 80, 16), Qt::AlignLeft | Qt::AlignVCenter, percentLabel(row));
    }
    painter.setFont(Theme::words(TextSize::Small));
    int line = 0;
    for (const Cause& cause : causes) {
        double sum = 0;
        for (const double share : cause.shares)
            sum += share;
        if (sum == 0 && line >= 1 && &cause == &causes.back())
            continue; // rare cause, named only when there is some
        const QRectF swatch(area.right() - legendWidth, top + 5 + line * roomiestRow, 12, 12);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(cause.color);
        painter.drawRoundedRect(swatch, 2, 2);
        painter.setPen(theme.dim);
        painter.drawText(QRectF(swatch.right() + 8, swatch.top() - 2, legendWidth, 16), Qt::AlignLeft | Qt::AlignVCenter, cause.name);
        ++line;
    }
}

} // namespace pipewright
