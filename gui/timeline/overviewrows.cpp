// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/overviewrows.h"

#include "gui/timeline/lanegeometry.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QPainter>

#include <algorithm>
#include <array>

namespace pipewright {

namespace {

constexpr int peakLeft = OverviewRows::barsLeft + 20, barWidth = 15;

}

OverviewRows::OverviewRows(const TimelineView& timeline, const QRect& area)
    : m_timeline(timeline), m_area(area),
      m_count(std::min(static_cast<int>(timeline.layout().lanes().size()), std::max(0, area.height())))
{
}

QRect OverviewRows::rect(int row) const
{
    const int top = topOf(row), height = topOf(row + 1) - top;
    return {0, top, m_area.width(), std::max(1, height - (height > 3 ? 1 : 0))};
}

int OverviewRows::at(int y) const
{
    for (int row = 0; row < m_count; ++row)
        if (y >= topOf(row) && y < topOf(row + 1))
            return row;
    return -1;
}

std::pair<int, int> OverviewRows::devicesOf(int row) const
{
    const auto devices = static_cast<int>(m_timeline.layout().lanes().size());
    return {row * devices / m_count, (row + 1) * devices / m_count};
}

OverviewRows::Numbers OverviewRows::numbers(int row, bool measured) const
{
    Numbers numbers;
    const Document& document = m_timeline.document();
    const Document::Overlay* const overlay = measured ? document.overlay() : nullptr;
    const Prediction* const prediction = document.prediction();
    if (!prediction || (measured && !overlay))
        return numbers;
    const Metrics& metrics = overlay ? overlay->metrics : prediction->metrics;
    const auto [first, last] = devicesOf(row);
    for (std::size_t d = first; d < std::min(static_cast<std::size_t>(last), metrics.devices.size()); ++d) {
        if (metrics.makespan > 0)
            numbers.busy += static_cast<double>(metrics.devices[d].busy) / static_cast<double>(metrics.makespan);
        std::optional<Bytes> peak;
        if (!isMemoryPending(document.design(), *prediction))
            peak = metrics.devices[d].peakBytes;
        if (overlay)
            peak = d < overlay->comparison.devices.size() ? overlay->comparison.devices[d].measuredPeak : std::nullopt;
        if (peak <= numbers.peak)
            continue;
        numbers.peak = peak;
        const std::vector<DeviceSpec>& devices = document.design().cluster.devices;
        numbers.limit = d < devices.size() ? devices[d].memory : 0;
    }
    numbers.busy /= std::max(1, last - first);
    return numbers;
}

QString OverviewRows::textAt(int y) const
{
    const int row = at(y);
    const Document& document = m_timeline.document();
    if (row < 0 || !document.prediction())
        return {};
    const auto [first, last] = devicesOf(row);
    const QString name =
        last - first == 1 ? deviceLabel(document.design(), first)
                          : QCoreApplication::translate("OverviewRows", "%1 to %2, mean and highest peak")
                                .arg(deviceLabel(document.design(), first), deviceLabel(document.design(), last - 1));
    const Side side = document.side();
    const auto write = [&](double predictedBusy, double measuredBusy, std::optional<Bytes> predictedPeak,
                           std::optional<Bytes> measuredPeak) {
        return QCoreApplication::translate("OverviewRows", "busy %1 · peak %2, %3")
            .arg(sidedText(side, percentText(predictedBusy), percentText(measuredBusy)),
                 sidedSizes(side, predictedPeak, measuredPeak), sideName(side));
    };
    const Numbers predicted = numbers(row, false), measured = numbers(row, true);
    QString text = QCoreApplication::translate("OverviewRows", "%1 · %2")
                       .arg(name, write(predicted.busy, measured.busy, predicted.peak, measured.peak));
    if (const auto range = m_timeline.range()) {
        const Document::Range found = document.statistics(range->first, range->second);
        const auto busy = [first = first, last = last](const std::optional<RangeStatistics>& of) {
            double sum = 0;
            for (int d = first; of && d < last; ++d)
                sum += of->busyShare(d);
            return sum / (last - first);
        };
        const auto peak = [first = first, last = last](const std::optional<RangeStatistics>& of) {
            std::optional<Bytes> highest;
            for (int d = first; of && d < last; ++d)
                highest = std::max(highest, of->devices[d].peak);
            return highest;
        };
        text +=
            QCoreApplication::translate("OverviewRows", "\nin the range: %1")
                .arg(write(busy(found.predicted), busy(found.measured), peak(found.predicted), peak(found.measured)));
    }
    return text;
}

void OverviewRows::paint(QPainter& painter, const TimeAxis& axis, const Theme& theme, double scale) const
{
    paintBars(painter, theme);
    const std::vector<Lane>& lanes = m_timeline.layout().lanes();
    for (int row = 0; row < m_count; ++row) {
        // When rows are averages, a row with a single device is painted the same way, or it would look like a line.
        if (static_cast<int>(lanes.size()) > m_count) {
            paintAverage(painter, row, axis, theme, scale);
            continue;
        }
        const Lane& lane = lanes[row];
        const LaneGeometry geometry = laneGeometry(lane, axis, rect(row), 0, scale);
        for (std::size_t op = 0; op < geometry.merged.size(); ++op)
            for (const QRectF& part : geometry.merged[op])
                painter.fillRect(part, theme.fills[op]);
        for (const BlockRect& item : geometry.blocks)
            painter.fillRect(item.rect, theme.fill(lane.blocks()[item.index].block.op));
    }
}

void OverviewRows::paintAverage(QPainter& painter, int row, const TimeAxis& axis, const Theme& theme,
                                double scale) const
{
    // A row of several devices has one colour per cell: those of the operations in it, and of the background, by their
    // time. The cells are as many pixels wide as the row has devices, so that cost follows from the pixels alone.
    const auto [first, last] = devicesOf(row);
    const QRect rect = this->rect(row);
    const double cell = (last - first) / scale, length = cell * axis.nsPerPixel;
    struct Reached {
        std::size_t block = 0;
        std::array<double, opCount> times{};
    };
    std::vector<Reached> reached(last - first);
    for (double x = axis.left; x < axis.right(); x += cell) {
        std::array<double, 3> color{};
        double busy = 0;
        const auto mix = [&color](const QColor& with, double share) {
            color[0] += share * with.redF();
            color[1] += share * with.greenF();
            color[2] += share * with.blueF();
        };
        for (int d = first; d < last; ++d) {
            const Lane& lane = m_timeline.layout().lanes()[d];
            Reached& so = reached[d - first];
            const double until = std::max(0.0, axis.timeAt(x + cell));
            const std::array<double, opCount> times = lane.timePerOpUntil(until, so.block);
            for (std::size_t op = 0; op < opCount; ++op) {
                const double share = (times[op] - so.times[op]) / length / (last - first);
                mix(theme.fills[op], share);
                busy += share;
            }
            const std::size_t next = lane.firstStartingFrom(until, so.block);
            so = {next > 0 ? next - 1 : 0, times};
        }
        mix(theme.background, 1 - busy);
        const auto part = [](double value) { return static_cast<float>(std::clamp(value, 0.0, 1.0)); };
        painter.fillRect(QRectF(x, rect.top(), std::min(cell, axis.right() - x), rect.height()),
                         QColor::fromRgbF(part(color[0]), part(color[1]), part(color[2])));
    }
}

void OverviewRows::paintBars(QPainter& painter, const Theme& theme) const
{
    std::vector<Numbers> rows;
    Bytes highest = 0; // that a full bar stands for
    for (int row = 0; row < m_count; ++row) {
        rows.push_back(numbers(row, m_timeline.document().showsMeasured()));
        highest = std::max({highest, rows.back().peak.value_or(0), rows.back().limit});
    }
    for (int row = 0; row < m_count; ++row) {
        const Numbers& of = rows[row];
        const QRect place = rect(row);
        const auto bar = [&](int left, double share, const QColor& color) {
            painter.fillRect(QRectF(left, place.top(), barWidth, place.height()), theme.hairline);
            painter.fillRect(QRectF(left, place.top(), barWidth * std::clamp(share, 0.0, 1.0), place.height()), color);
        };
        bar(barsLeft, of.busy, theme.accent);
        const Bytes peak = of.peak.value_or(0);
        if (highest > 0)
            bar(peakLeft, static_cast<double>(peak) / static_cast<double>(highest),
                of.limit > 0 && peak > of.limit ? theme.bad : theme.waiting);
    }
}

} // namespace pipewright
