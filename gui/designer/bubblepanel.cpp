// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/bubblepanel.h"

#include "gui/widgets/labels.h"
#include "gui/widgets/words.h"

#include <QEvent>
#include <QLabel>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int top = 24;
constexpr int captionLeft = 18;
constexpr int roomiestRow = 24;
constexpr int tallest = 210;
constexpr int legendWidth = 190;
constexpr int rareFrom = 4; ///< these causes are listed only when present

} // namespace

BubblePanel::BubblePanel(QWidget* parent) : QWidget(parent)
{
    setAccessibleName(tr("Causes of idle time per device"));
    makeHeading(tr("Bubbles"), this)->move(captionLeft, 2);
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
    m_longest = 0;
    for (const IdleCauses& idle : m_metrics.idleCauses) {
        m_longest = std::max(m_longest, static_cast<double>(idle.sum())
                                            / std::max<double>(1, static_cast<double>(m_metrics.makespan)));
    }
    update();
}

void BubblePanel::setPlot(int left, int width)
{
    if (left == m_plotLeft && width == m_plotWidth)
        return;
    m_plotLeft = left;
    m_plotWidth = width;
    update();
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
                              {tr("host"), theme.fill(Op::R), {}},
                              {tr("pins and reductions"), theme.fill(Op::U), {}}};
    const double whole = std::max<double>(1, static_cast<double>(m_metrics.makespan));
    for (const IdleCauses& idle : m_metrics.idleCauses) {
        const Nanoseconds parts[] = {
            idle.warmUp + idle.coolDown, idle.waitGradient, idle.waitActivation, idle.transfer, idle.host, idle.other};
        for (std::size_t i = 0; i < causes.size(); ++i)
            causes[i].shares.push_back(static_cast<double>(parts[i]) / whole);
    }
    return causes;
}

void BubblePanel::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        update();
}

QRectF BubblePanel::plotArea() const
{
    const int rowHeight = rows() == 0 ? roomiestRow : std::clamp((height() - top - 4) / rows(), 2, roomiestRow);
    return QRectF(m_plotLeft, top, std::max(0, std::min(m_plotWidth, width() - m_plotLeft)),
                  rowHeight * std::max(1, rows()));
}

double BubblePanel::xOf(double share) const
{
    // The longest bar leaves space for its percentage and the legend.
    const QRectF area = plotArea();
    const double part = std::clamp(1.0 - double(legendWidth + 120) / std::max(1, m_plotWidth), 0.3, 0.75);
    return area.left() + share / std::max(m_longest, 0.001) * part * area.width();
}

void BubblePanel::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const std::vector<Cause> causes = this->causes();
    paintBars(painter, causes);
    paintLabels(painter, causes);
}

void BubblePanel::paintBars(QPainter& painter, const std::vector<Cause>& causes) const
{
    if (rows() == 0)
        return;
    const QRectF area = plotArea();
    const double scale = devicePixelRatioF(), rowHeight = area.height() / rows();
    const double barHeight = rowHeight * (rowHeight > 12 ? 0.62 : 0.8);
    const auto whole = [scale](double value) { return std::round(value * scale) / scale; };
    for (int row = 0; row < rows(); ++row) {
        const double y = whole(area.top() + row * rowHeight + (rowHeight - barHeight) / 2);
        const double bottom = std::max(y + 1 / scale, whole(y + barHeight));
        // The running sum is rounded, not each part, to avoid gaps.
        double share = 0;
        for (const Cause& cause : causes) {
            const double from = whole(xOf(share));
            share += cause.shares[row];
            if (const double to = whole(xOf(share)); to > from)
                painter.fillRect(QRectF(from, y, to - from, bottom - y), cause.color);
        }
    }
}

void BubblePanel::paintLabels(QPainter& painter, const std::vector<Cause>& causes) const
{
    const Theme& theme = Theme::of(*this);
    const QRectF area = plotArea();
    const int rows = this->rows();
    const double rowHeight = rows == 0 ? roomiestRow : area.height() / rows;
    const int every = std::max(1, static_cast<int>(14 / rowHeight + 0.999));
    for (int row = 0; row < rows; row += every) {
        const double middle = area.top() + (row + 0.5) * rowHeight;
        painter.setFont(Theme::words(TextSize::Small));
        painter.setPen(theme.dim);
        painter.drawText(QRectF(captionLeft, middle - 8, area.left() - captionLeft - 6, 16),
                         Qt::AlignLeft | Qt::AlignVCenter, m_names[row]);
        double share = 0;
        for (const Cause& cause : causes)
            share += cause.shares[row];
        painter.setFont(Theme::numbers(TextSize::Small));
        painter.drawText(QRectF(xOf(share) + 8, middle - 8, 80, 16), Qt::AlignLeft | Qt::AlignVCenter,
                         percentLabel(row));
    }
    painter.setFont(Theme::words(TextSize::Small));
    int line = 0;
    for (const Cause& cause : causes) {
        double sum = 0;
        for (const double share : cause.shares)
            sum += share;
        if (sum == 0 && &cause - causes.data() >= rareFrom)
            continue;
        const QRectF swatch(area.right() - legendWidth, top + 5 + line * roomiestRow, 12, 12);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(cause.color);
        painter.drawRoundedRect(swatch, 2, 2);
        painter.setPen(theme.dim);
        painter.drawText(QRectF(swatch.right() + 8, swatch.top() - 2, legendWidth, 16),
                         Qt::AlignLeft | Qt::AlignVCenter, cause.name);
        ++line;
    }
}

} // namespace pipewright

#include "moc_bubblepanel.cpp"
