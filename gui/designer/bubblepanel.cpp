// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/bubblepanel.h"

#include "gui/widgets/labels.h"
#include "gui/widgets/words.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int top = 24;
constexpr int scaleHeight = 16; // numbers below the bars
constexpr int captionLeft = 18;
constexpr int roomiestRow = 22;
constexpr int tallest = 210;
constexpr int legendWidth = 190;
constexpr int leastForLegend = 520; // pixels of the plot; with less the names of the causes stand below it
constexpr int legendRow = 18, leastForLegendBelow = 100;
constexpr double usualScale = 0.5;

} // namespace

BubblePanel::BubblePanel(QWidget* parent) : QWidget(parent)
{
    setAccessibleName(tr("Causes of idle time per device"));
    makeHeading(tr("Bubbles"), this)->move(captionLeft, 2);
}

void BubblePanel::showDesign(const Design& design, const Prediction* prediction, const Document::Overlay* overlay,
                             Side side)
{
    const std::size_t before = m_names.size();
    m_recorded = overlay != nullptr;
    m_side = overlay ? side : Side::Predicted;
    m_names.clear();
    m_predicted.clear();
    m_measured.clear();
    const Metrics metrics = prediction ? prediction->metrics : Metrics{};
    const auto shareOf = [](Nanoseconds part, Nanoseconds whole) {
        return static_cast<double>(part) / std::max<double>(1, static_cast<double>(whole));
    };
    double longest = 0;
    for (int d = 0; d < static_cast<int>(metrics.devices.size()); ++d) {
        m_names.push_back(deviceLabel(design, d));
        m_predicted.push_back(shareOf(metrics.devices[d].idle, metrics.makespan));
        longest = std::max(longest, m_predicted.back());
    }
    m_parts.assign(causes().size(), {});
    if (m_side == Side::Predicted) {
        for (const IdleCauses& idle : metrics.idleCauses) {
            const Nanoseconds parts[] = {idle.warmUp + idle.coolDown,
                                         idle.waitGradient,
                                         idle.waitActivation,
                                         idle.transfer,
                                         idle.copies,
                                         idle.host,
                                         idle.other};
            for (std::size_t i = 0; i < m_parts.size(); ++i)
                m_parts[i].push_back(shareOf(parts[i], metrics.makespan));
        }
    } else {
        const Explanation& explanation = overlay->explanation;
        for (const DeviceExplanation& device : explanation.devices) {
            const Nanoseconds parts[] = {
                device.warmUp + device.coolDown,   device.lateData, device.transfer, device.hostGap, device.memoryWait,
                device.pinned + device.notRecorded};
            double all = 0;
            for (std::size_t i = 0; i < m_parts.size(); ++i) {
                m_parts[i].push_back(shareOf(parts[i], explanation.measured));
                all += m_parts[i].back();
            }
            m_measured.push_back(all);
            longest = std::max(longest, all);
        }
    }
    m_scale = longest > usualScale ? 1 : usualScale;
    if (m_names.size() != before)
        updateGeometry();
    update();
}

void BubblePanel::setAxis(const TimeAxis& axis)
{
    if (axis == m_axis)
        return;
    m_axis = axis;
    update();
}

void BubblePanel::setReadings(const TimeReadings& readings)
{
    if (readings == m_readings)
        return;
    m_readings = readings;
    update();
}

QSize BubblePanel::sizeHint() const
{
    const int rows = std::max<int>(5, static_cast<int>(m_names.size()));
    return {600, std::min(tallest, top + rows * roomiestRow + scaleHeight + 6)};
}

QString BubblePanel::percentLabel(int device) const
{
    if (device >= std::ssize(m_predicted))
        return {};
    return sidedText(m_side, percentText(m_predicted[device]),
                     device < std::ssize(m_measured) ? percentText(m_measured[device]) : QString());
}

std::vector<BubblePanel::Cause> BubblePanel::causes() const
{
    const Theme& theme = Theme::of(*this);
    std::vector<Cause> causes;
    // A prediction knows which input a block waited for; a recording only knows when the input arrived.
    if (m_side == Side::Predicted)
        causes = {{tr("warm-up and cool-down"), theme.waiting, Qt::FDiagPattern, {}},
                  {tr("waits for gradient"), theme.fill(Op::I), Qt::BDiagPattern, {}},
                  {tr("waits for activation"), theme.fill(Op::F), Qt::SolidPattern, {}},
                  {tr("transfer"), theme.bad, Qt::HorPattern, {}},
                  {tr("gathers and sums"), theme.fill(Op::W), Qt::VerPattern, {}},
                  {tr("host"), theme.fill(Op::R), Qt::Dense6Pattern, {}},
                  {tr("pins and reductions"), theme.fill(Op::U), Qt::DiagCrossPattern, {}}};
    else
        causes = {{tr("warm-up and cool-down"), theme.waiting, Qt::FDiagPattern, {}},
                  {tr("late data"), theme.fill(Op::I), Qt::BDiagPattern, {}},
                  {tr("transfer"), theme.bad, Qt::HorPattern, {}},
                  {tr("host"), theme.fill(Op::R), Qt::Dense6Pattern, {}},
                  {tr("waits for memory"), theme.fill(Op::U), Qt::DiagCrossPattern, {}},
                  {tr("pinned or not recorded"), theme.waiting, Qt::CrossPattern, {}}};
    for (std::size_t i = 0; i < causes.size() && i < m_parts.size(); ++i)
        causes[i].shares = m_parts[i];
    return causes;
}

bool BubblePanel::hasLegendBelow() const
{
    return std::min(m_axis.width, width() - m_axis.left) < leastForLegend && height() >= leastForLegendBelow;
}

QRectF BubblePanel::plotArea() const
{
    const int below = hasLegendBelow() ? legendRow : 0;
    const int room = height() - top - 4 - scaleHeight - below;
    // With many devices a row may be less than a pixel high; all rows are still painted.
    const double rowHeight = rows() == 0          ? roomiestRow
                             : room >= 2 * rows() ? std::min(room / rows(), roomiestRow)
                                                  : std::max(0, room) / static_cast<double>(rows());
    return QRectF(m_axis.left, top, std::max(0, std::min(m_axis.width, width() - m_axis.left)),
                  rowHeight * std::max(1, rows()));
}

double BubblePanel::xOf(double share) const
{
    // Time zero of the whole schedule stands this far to the right of the plot's edge; the scale keeps that place when
    // the lanes are zoomed. The longest bar leaves space for its percentage and the legend.
    constexpr double zero = 10;
    const QRectF area = plotArea();
    const double legend = area.width() >= leastForLegend ? legendWidth : 0;
    const double length = std::max(40.0, area.width() - zero - legend - 110);
    return area.left() + zero + share / m_scale * length;
}

void BubblePanel::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const Theme& theme = Theme::of(*this);
    const QRectF whole(m_axis.left, 0, m_axis.width, height());
    paintTicks(painter, m_readings, m_axis, whole, theme);
    const std::vector<Cause> causes = this->causes();
    paintBars(painter, causes);
    paintScale(painter);
    paintLabels(painter, causes);
    paintReadings(painter, m_readings, m_axis, whole, theme);
}

void BubblePanel::paintBars(QPainter& painter, const std::vector<Cause>& causes) const
{
    if (rows() == 0)
        return;
    const Theme& theme = Theme::of(*this);
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
            if (row >= std::ssize(cause.shares))
                continue;
            const double from = whole(xOf(share));
            share += cause.shares[row];
            const double to = whole(xOf(share));
            if (to <= from)
                continue;
            const QRectF part(from, y, to - from, bottom - y);
            painter.fillRect(part, cause.color);
            if (cause.texture != Qt::SolidPattern && bottom - y >= 6)
                painter.fillRect(part, QBrush(theme.texture, cause.texture));
        }
        if (m_side == Side::Both) { // the predicted idle time, outlined around the measured
            QPen pen(theme.text, 1);
            pen.setDashPattern({3, 2});
            painter.setPen(pen);
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(QRectF(xOf(0) + 0.5, y - 1.5, std::max(0.0, whole(xOf(m_predicted[row])) - xOf(0) - 1),
                                    bottom - y + 2));
        }
    }
}

void BubblePanel::paintScale(QPainter& painter) const
{
    if (rows() == 0)
        return;
    const Theme& theme = Theme::of(*this);
    const double bottom = plotArea().bottom();
    painter.setFont(Theme::numbers(TextSize::Small));
    for (int step = 0; step <= 5; ++step) {
        const double share = m_scale * step / 5;
        const double x = std::round(xOf(share));
        painter.fillRect(QRectF(x, bottom, 1, 3), theme.dim);
        painter.setPen(theme.dim);
        painter.drawText(QRectF(x - 30, bottom + 3, 60, 13), Qt::AlignCenter,
                         QStringLiteral("%1\u00a0%").arg(std::lround(share * 100)));
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
        double share = m_side == Side::Measured ? 0 : m_predicted[row];
        if (row < std::ssize(m_measured))
            share = std::max(share, m_measured[row]);
        painter.setFont(Theme::numbers(TextSize::Small));
        painter.drawText(QRectF(xOf(share) + 8, middle - 8, 150, 16), Qt::AlignLeft | Qt::AlignVCenter,
                         percentLabel(row));
    }
    painter.setFont(Theme::words(TextSize::Small));
    if (m_recorded) {
        painter.setPen(theme.dim);
        painter.drawText(QRectF(xOf(0), 2, area.width(), 16), Qt::AlignLeft | Qt::AlignVCenter, sideName(m_side));
    }
    const bool below = hasLegendBelow();
    if (area.width() < leastForLegend && !below)
        return;
    const QFontMetricsF metrics(painter.font());
    int line = 0;
    double x = captionLeft;
    const auto legend = [&](const QString& name, const auto& swatchOf) {
        const double wide = metrics.horizontalAdvance(name);
        if (below && x + 18 + wide > width())
            return;
        const QRectF swatch = below ? QRectF(x, area.bottom() + scaleHeight + 7, 12, 11)
                                    : QRectF(area.right() - legendWidth + 16, top + 3 + line++ * 17, 12, 11);
        x += 18 + wide + 14;
        swatchOf(swatch);
        painter.setPen(theme.dim);
        painter.drawText(QRectF(swatch.right() + (below ? 6 : 8), swatch.top() - 3, legendWidth, 16),
                         Qt::AlignLeft | Qt::AlignVCenter, name);
    };
    for (const Cause& cause : causes) {
        double sum = 0;
        for (const double share : cause.shares)
            sum += share;
        if (sum == 0)
            continue;
        legend(cause.name, [&](const QRectF& swatch) {
            painter.fillRect(swatch, cause.color);
            if (cause.texture != Qt::SolidPattern)
                painter.fillRect(swatch, QBrush(theme.texture, cause.texture));
        });
    }
    if (m_side == Side::Both)
        legend(tr("predicted"), [&](const QRectF& swatch) {
            QPen pen(theme.text, 1);
            pen.setDashPattern({3, 2});
            painter.setPen(pen);
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(swatch.adjusted(0.5, 0.5, -0.5, -0.5));
        });
}

} // namespace pipewright

#include "moc_bubblepanel.cpp"
