// SPDX-License-Identifier: GPL-3.0-or-later
// Paints merged runs of equal pixel columns from StepCurve::columns(). O(pixels) per frame.
#include "gui/memory/memorycurve.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

/// Colours are mixed to opaque ones beforehand, because blending costs many times as much.
QColor mixedOver(const QColor& top, const QColor& under)
{
    const auto share = static_cast<float>(top.alphaF());
    const auto mixed = [share](float above, float below) { return share * above + (1 - share) * below; };
    return QColor::fromRgbF(mixed(top.redF(), under.redF()), mixed(top.greenF(), under.greenF()),
                            mixed(top.blueF(), under.blueF()));
}

} // namespace

std::vector<MemoryCurve::Run> MemoryCurve::runsOf(const StepCurve& curve, double scale, double thickness) const
{
    // Aligned to device pixels, for crisp lines and columns equal to those of the lanes above.
    const auto line = [scale](double y) { return std::round(y * scale) / scale; };
    const double half = 0.5 / scale * m_axis.nsPerPixel, thick = std::max(1.0, std::round(thickness * scale)) / scale;
    std::vector<Run> runs;
    for (const StepCurve::Column& column :
         curve.columns(m_axis.start - half, m_axis.end() - half, static_cast<int>(std::lround(m_axis.width * scale)))) {
        const Run run{m_axis.left + column.x / scale, m_axis.left + (column.x + column.width) / scale,
                      line(yOf(static_cast<double>(column.high))), line(yOf(static_cast<double>(column.low))) + thick};
        if (!runs.empty() && runs.back().right == run.left && runs.back().upper == run.upper
            && runs.back().lower == run.lower)
            runs.back().right = run.right;
        else
            runs.push_back(run);
    }
    return runs;
}

int MemoryCurve::paint(QPainter& painter, const MemoryOfDevice& device, const Theme& theme, double scale) const
{
    int rectangles = 0;
    painter.save();
    const double start = std::clamp(m_axis.xOf(0), m_area.left(), m_area.right()); // of the step
    painter.setClipRect(QRectF(QPointF(start, m_area.top()), m_area.bottomRight()), Qt::IntersectClip);
    const auto fill = [&](const QRectF& rect, const QColor& color) {
        painter.fillRect(rect, color);
        ++rectangles;
    };
    const double ground = std::round(yOf(static_cast<double>(device.persistent)) * scale) / scale;
    if (const std::vector<Run> runs = runsOf(device.filled, scale, 1.5); !runs.empty()) {
        fill(QRectF(m_area.left(), ground, m_area.width(), m_area.bottom() - ground), theme.persistent);
        const bool over = device.limit > 0 && device.filled.peak().bytes > device.limit;
        QColor tint = over ? theme.bad : theme.chartFill;
        if (over)
            tint.setAlphaF(0.3f);
        const QColor below = mixedOver(tint, theme.background);
        // The part common to all columns is one rectangle, because a narrow rectangle costs as much as a wide one.
        double common = runs.front().lower;
        for (const Run& run : runs)
            common = std::max(common, run.lower);
        if (common < ground)
            fill(QRectF(runs.front().left, common, runs.back().right - runs.front().left, ground - common), below);
        for (const Run& run : runs)
            if (const double until = std::min(common, ground); run.lower < until)
                fill(QRectF(run.left, run.lower, run.right - run.left, until - run.lower), below);
        for (const Run& run : runs)
            fill(QRectF(run.left, run.upper, run.right - run.left, run.lower - run.upper),
                 over ? theme.bad : theme.accent);
    }
    // Dashes three pixels long stand on a grid of five, so that they stay in place while the curve changes.
    constexpr double dash = 3, period = 5;
    for (const Run& run : runsOf(device.outlined, scale, 1)) {
        double from = std::floor((run.left - m_axis.left) / period) * period + m_axis.left;
        for (; from < run.right; from += period)
            if (const double left = std::max(from, run.left), right = std::min(from + dash, run.right); right > left)
                fill(QRectF(left, run.upper, right - left, run.lower - run.upper), theme.text);
    }
    if (device.limit > 0 && static_cast<double>(device.limit) <= m_top) {
        QPen pen(theme.bad, 1.2, Qt::CustomDashLine);
        pen.setDashPattern({4, 3});
        painter.setPen(pen);
        const double y = yOf(static_cast<double>(device.limit));
        painter.drawLine(QPointF(m_area.left(), y), QPointF(m_area.right(), y));
    }
    painter.restore();
    return rectangles;
}

} // namespace pipewright
