// SPDX-License-Identifier: GPL-3.0-or-later
// Paints merged runs of equal pixel columns from StepCurve::columns(). O(pixels) per frame.
#include "gui/memory/memorypanel.h"

#include "gui/widgets/labels.h"
#include "gui/widgets/words.h"

#include <QEvent>
#include <QLabel>
#include <QPainter>
#include <QTimer>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int top = 18;
constexpr int bottom = 6;
constexpr int captionLeft = 18;

/// Sets the text of a free-floating label and resizes it.
void setWords(QLabel* label, const QString& text)
{
    if (label->text() == text)
        return;
    label->setText(text);
    label->adjustSize();
}

/// A hairline with round corners along the inside of `area`. Only the corners are smoothed: smoothing sides as long as
/// a window takes a millisecond of every frame.
void drawFrame(QPainter& painter, const QRectF& area, const QColor& color)
{
    const double radius = Theme::blockRadius, width = area.width() - 2 * radius, height = area.height() - 2 * radius;
    for (const double y : {area.top(), area.bottom() - 1})
        painter.fillRect(QRectF(area.left() + radius, y, width, 1), color);
    for (const double x : {area.left(), area.right() - 1})
        painter.fillRect(QRectF(x, area.top() + radius, 1, height), color);
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(color);
    const double size = 2 * radius - 1; // of the corner's circle, in the middle of the line
    const double left = area.left() + 0.5, upper = area.top() + 0.5, right = area.right() - 0.5 - size,
                 lower = area.bottom() - 0.5 - size;
    constexpr int quarter = 90 * 16; // QPainter counts in sixteenths of a degree
    painter.drawArc(QRectF(right, upper, size, size), 0, quarter);
    painter.drawArc(QRectF(left, upper, size, size), quarter, quarter);
    painter.drawArc(QRectF(left, lower, size, size), 2 * quarter, quarter);
    painter.drawArc(QRectF(right, lower, size, size), 3 * quarter, quarter);
    painter.restore();
}

} // namespace

MemoryPanel::MemoryPanel(QWidget* parent)
    : QWidget(parent), m_deviceName(new QLabel(this)), m_peak(makeCaption({}, TextSize::Small, this)),
      m_when(makeCaption({}, TextSize::Small, this))
{
    setAccessibleName(tr("Memory over time"));
    auto* heading = makeHeading(tr("Memory"), this);
    heading->move(captionLeft, top);
    m_deviceName->setFont(Theme::words(TextSize::Normal));
    m_deviceName->move(captionLeft, top + 20);
    m_peak->move(captionLeft, top + 40);
    m_when->move(captionLeft, top + 56);
}

void MemoryPanel::showDesign(const Design& design, const Prediction* prediction, const Document::Overlay* overlay,
                             int device)
{
    m_device = device;
    m_limit = 0;
    m_predicted = prediction != nullptr;
    m_curve = {};
    m_measured = {};
    m_persistent = 0;
    const auto index = static_cast<std::size_t>(std::max(0, device));
    if (prediction && index < prediction->timeline.memory.size()) {
        m_curve = StepCurve(prediction->timeline.memory[index]);
        m_persistent = prediction->program.devices[index].persistentBytes;
    }
    if (overlay && index < overlay->measured.memory.size())
        m_measured = StepCurve(overlay->measured.memory[index]);
    if (device >= 0 && device < static_cast<int>(design.cluster.devices.size()))
        m_limit = design.cluster.devices[device].memory;
    setWords(m_deviceName, deviceLabel(design, device));
    refresh();
}

void MemoryPanel::setAxis(const TimeAxis& axis)
{
    if (axis == m_axis)
        return;
    m_axis = axis;
    update();
}

void MemoryPanel::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        QTimer::singleShot(0, this, &MemoryPanel::refresh); // its labels get the new style sheet after it
}

void MemoryPanel::refresh()
{
    setWords(m_peak, m_curve.empty() ? QString() : tr("peak %1").arg(sizeText(m_curve.peak().bytes)));
    setWords(m_when, m_curve.empty() ? QString() : tr("at %1").arg(durationText(m_curve.peak().time)));
    setTone(m_peak, m_limit > 0 && m_curve.peak().bytes > m_limit ? Tone::Bad : Tone::Dim);
    update();
}

QRectF MemoryPanel::plotArea() const
{
    return QRectF(m_axis.left, top, std::min(m_axis.width, std::max(0, width() - m_axis.left)),
                  std::max(0, height() - top - bottom));
}

bool MemoryPanel::showsLimit() const
{
    // A limit far above the peak would flatten the curve.
    return m_limit > 0 && m_limit < 8 * std::max<Bytes>(1, m_curve.peak().bytes);
}

Bytes MemoryPanel::highest() const
{
    return std::max<Bytes>(1, std::max(m_curve.peak().bytes, showsLimit() ? m_limit : 0));
}

double MemoryPanel::yOf(double bytes) const
{
    const QRectF area = plotArea();
    return area.bottom() - bytes / (static_cast<double>(highest()) * 1.1) * area.height();
}

void MemoryPanel::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    m_rectangles = 0;
    if (!m_curve.empty())
        paintCurves(painter);
    paintCaptions(painter);
}

void MemoryPanel::paintCurves(QPainter& painter)
{
    const Theme& theme = Theme::of(*this);
    const QRectF area = plotArea();
    const double scale = devicePixelRatioF();
    painter.save();
    painter.setClipRect(area);
    const auto fill = [&](const QRectF& rect, const QColor& color) {
        painter.fillRect(rect, color);
        ++m_rectangles;
    };
    // Aligned to device pixels, for crisp lines and columns equal to those of the lanes above.
    const auto line = [scale](double y) { return std::round(y * scale) / scale; };
    const double ground = line(yOf(static_cast<double>(m_persistent)));
    fill(QRectF(area.left(), ground, area.width(), area.bottom() - ground), theme.persistent);
    const auto curve = [&](const StepCurve& steps, const QColor& color, const QColor* below, double thickness) {
        const double half = 0.5 / scale * m_axis.nsPerPixel,
                     thick = std::max(1.0, std::round(thickness * scale)) / scale;
        // Equal neighbouring columns are merged.
        struct Run {
            double left, right, upper, lower;
        };
        std::vector<Run> runs;
        for (const StepCurve::Column& column : steps.columns(m_axis.start - half, m_axis.end() - half,
                                                             static_cast<int>(std::lround(m_axis.width * scale)))) {
            const Run run{m_axis.left + column.x / scale, m_axis.left + (column.x + column.width) / scale,
                          line(yOf(static_cast<double>(column.high))),
                          line(yOf(static_cast<double>(column.low))) + thick};
            if (!runs.empty() && runs.back().right == run.left && runs.back().upper == run.upper
                && runs.back().lower == run.lower)
                runs.back().right = run.right;
            else
                runs.push_back(run);
        }
        if (runs.empty())
            return;
        if (below) {
            // The part common to all columns is one rectangle; narrow ones cost as much as a wide one.
            double common = runs.front().lower;
            for (const Run& run : runs)
                common = std::max(common, run.lower);
            if (common < ground)
                fill(QRectF(runs.front().left, common, runs.back().right - runs.front().left, ground - common), *below);
            for (const Run& run : runs)
                if (const double until = std::min(common, ground); run.lower < until)
                    fill(QRectF(run.left, run.lower, run.right - run.left, until - run.lower), *below);
        }
        for (const Run& run : runs)
            fill(QRectF(run.left, run.upper, run.right - run.left, run.lower - run.upper), color);
    };
    // Opaque colours, mixed beforehand: blending costs many times as much.
    const QColor under = theme.background;
    const auto share = static_cast<float>(theme.chartFill.alphaF());
    const auto mixed = [share](float top, float bottom) { return share * top + (1 - share) * bottom; };
    const QColor below =
        QColor::fromRgbF(mixed(theme.chartFill.redF(), under.redF()), mixed(theme.chartFill.greenF(), under.greenF()),
                         mixed(theme.chartFill.blueF(), under.blueF()));
    curve(m_curve, theme.accent, &below, 1.5);
    curve(m_measured, theme.text, nullptr, 1);
    if (showsLimit()) {
        painter.setPen(QPen(theme.bad, 1.2, Qt::CustomDashLine));
        QPen pen = painter.pen();
        pen.setDashPattern({4, 3});
        painter.setPen(pen);
        const double y = yOf(static_cast<double>(m_limit));
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    }
    painter.restore();
}

void MemoryPanel::paintCaptions(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    const QRectF area = plotArea();
    drawFrame(painter, area, theme.hairline);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setFont(Theme::words(TextSize::Small));
    if (!m_predicted) {
        painter.setPen(theme.dim);
        painter.drawText(area, Qt::AlignCenter, tr("No prediction: the placed blocks cannot run"));
        return;
    }
    if (m_persistent > 0) {
        const double y = yOf(static_cast<double>(m_persistent));
        const QRectF ground(area.left() + 10, y, area.width() - 20, area.bottom() - y);
        painter.setPen(theme.isDark ? theme.text : theme.dim);
        if (ground.height() > 16)
            painter.drawText(ground, Qt::AlignLeft | Qt::AlignVCenter,
                             tr("weights + optimizer %1").arg(sizeText(m_persistent)));
    }
    if (m_limit > 0) {
        const double y = std::max(area.top() + 1, yOf(static_cast<double>(m_limit)));
        const bool shown = yOf(static_cast<double>(m_limit)) > area.top();
        painter.setPen(shown ? theme.bad : theme.dim);
        painter.drawText(QRectF(area.left(), y - (shown ? 17 : -3), area.width() - 8, 16),
                         Qt::AlignRight | Qt::AlignVCenter, tr("limit %1").arg(sizeText(m_limit)));
    }
}

} // namespace pipewright

#include "moc_memorypanel.cpp"
