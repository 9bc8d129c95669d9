// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/panels/memorypanel.h"

#include "gui/panels/chart.h"
#include "gui/panels/labels.h"
#include "gui/panels/words.h"

#include <QEvent>
#include <QLabel>
#include <QPainter>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int top = 18;
constexpr int bottom = 6;
constexpr int captionLeft = 18;

std::vector<QPointF> level(const TimeAxis& axis, Bytes bytes)
{
    return {{axis.start, static_cast<double>(bytes)}, {axis.end(), static_cast<double>(bytes)}};
}

} // namespace

MemoryPanel::MemoryPanel(QWidget* parent)
    : QWidget(parent)
    , m_chart(new Chart(this))
    , m_deviceName(new QLabel(this))
    , m_peak(makeCaption({}, TextSize::Small, this))
    , m_when(makeCaption({}, TextSize::Small, this))
{
    setAccessibleName(tr("Memory over time"));
    auto* heading = makeHeading(tr("Memory"), this);
    heading->move(captionLeft, top);
    m_deviceName->setFont(Theme::words(TextSize::Normal));
    m_deviceName->move(captionLeft, top + 20);
    m_peak->move(captionLeft, top + 40);
    m_when->move(captionLeft, top + 56);
    m_chart->setForeground([this](QPainter& painter) { paintCaptions(painter); });
    m_chart->lower();
}

void MemoryPanel::showDesign(const Design& design, const Prediction* prediction, const Document::Overlay* overlay, int device)
{
    m_device = device;
    m_limit = 0;
    m_predicted = prediction != nullptr;
    m_curve.clear();
    m_measured.clear();
    m_persistent = 0;
    const auto index = static_cast<std::size_t>(std::max(0, device));
    if (prediction && index < prediction->timeline.memory.size()) {
        m_curve = prediction->timeline.memory[index];
        m_persistent = prediction->program.devices[index].persistentBytes;
    }
    if (overlay && index < overlay->measured.memory.size())
        m_measured = overlay->measured.memory[index];
    if (device >= 0 && device < static_cast<int>(design.cluster.devices.size()))
        m_limit = design.cluster.devices[static_cast<std::size_t>(device)].memory;
    m_deviceName->setText(deviceLabel(design, device));
    m_deviceName->adjustSize();
    refresh();
}

void MemoryPanel::setAxis(const TimeAxis& axis)
{
    m_axis = axis;
    refresh();
}

void MemoryPanel::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    m_chart->setGeometry(rect());
    refresh();
}

void MemoryPanel::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        refresh();
}

void MemoryPanel::refresh()
{
    m_chart->clear();
    m_peak->clear();
    m_when->clear();
    m_chart->setPlotMargins(m_axis.left, top, std::max(0, width() - m_axis.right()), bottom);
    if (m_curve.empty()) {
        m_chart->setForeground([this](QPainter& painter) { paintCaptions(painter); });
        return;
    }
    const Theme& theme = Theme::of(*this);
    const auto fuller = [](const MemorySample& a, const MemorySample& b) { return a.bytes < b.bytes; };
    const MemorySample peak = *std::max_element(m_curve.begin(), m_curve.end(), fuller);
    m_peak->setText(tr("peak %1").arg(sizeText(peak.bytes)));
    setTone(m_peak, m_limit > 0 && peak.bytes > m_limit ? Tone::Bad : Tone::Dim);
    m_when->setText(tr("at %1").arg(durationText(peak.time)));
    m_peak->adjustSize();
    m_when->adjustSize();

    Bytes highest = peak.bytes;
    const bool limitShown = m_limit > 0 && m_limit < 8 * std::max<Bytes>(1, peak.bytes);
    if (limitShown)
        highest = std::max(highest, m_limit);
    m_chart->setRange(m_axis.start, m_axis.end(), 0, static_cast<double>(highest) * 1.1);

    const std::vector<QPointF> curve = thinSteps(m_curve, m_axis.start, m_axis.end(), m_axis.width);
    m_chart->addArea(level(m_axis, 0), level(m_axis, m_persistent), theme.persistent);
    m_chart->addArea(level(m_axis, m_persistent), curve, theme.chartFill);
    m_chart->addLine(curve, theme.accent, 1.5);
    if (!m_measured.empty())
        m_chart->addLine(thinSteps(m_measured, m_axis.start, m_axis.end(), m_axis.width),
                         theme.text, 1.0);
    if (limitShown)
        m_chart->addLine(level(m_axis, m_limit), theme.bad, 1.2, true);
    m_chart->setForeground([this](QPainter& painter) { paintCaptions(painter); });
}

void MemoryPanel::paintCaptions(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    const QRectF area = m_chart->plotArea();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(theme.hairline);
    painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), Theme::blockRadius, Theme::blockRadius);
    painter.setFont(Theme::words(TextSize::Small));
    if (!m_predicted) {
        painter.setPen(theme.dim);
        painter.drawText(area, Qt::AlignCenter, tr("No prediction: the placed blocks cannot run"));
        return;
    }
    if (m_persistent > 0) {
        const double y = m_chart->yOf(static_cast<double>(m_persistent));
        const QRectF ground(area.left() + 10, y, area.width() - 20, area.bottom() - y);
        painter.setPen(theme.isDark ? theme.text : theme.dim);
        if (ground.height() > 16)
            painter.drawText(ground, Qt::AlignLeft | Qt::AlignVCenter, tr("weights + optimizer %1").arg(sizeText(m_persistent)));
    }
    if (m_limit > 0) {
        const double y = std::max(area.top() + 1, m_chart->yOf(static_cast<double>(m_limit)));
        const bool shown = m_chart->yOf(static_cast<double>(m_limit)) > area.top();
        painter.setPen(shown ? theme.bad : theme.dim);
        painter.drawText(QRectF(area.left(), y - (shown ? 17 : -3), area.width() - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                         tr("limit %1").arg(sizeText(m_limit)));
    }
}

} // namespace pipewright
