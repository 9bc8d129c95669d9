// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/memory/memorybars.h"

#include "gui/widgets/chart.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int rowHeight = 28, greatestRow = 140;
constexpr int compactHeight = 300;
constexpr int legendHeight = 26;
constexpr int nameWidth = 76, labelWidth = 170;

} // namespace

MemoryBars::MemoryBars(QWidget* parent) : QWidget(parent), m_chart(new Chart(this))
{
    onThemeChange(this, [this] { refresh(); });
    setAccessibleName(tr("Memory of every device at its peak"));
    m_chart->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_chart->setPlotMargins(nameWidth, legendHeight, labelWidth, 0);
    m_chart->setForeground([this](QPainter& painter) { paint(painter); });
}

std::vector<MemoryKind> MemoryBars::kinds() const
{
    return memoryKinds(Theme::of(*this), m_devices);
}

void MemoryBars::setDevices(std::vector<DeviceMemory> devices, std::vector<QString> names)
{
    m_devices = std::move(devices);
    m_names = std::move(names);
    setMinimumHeight(std::min(sizeHint().height(), compactHeight));
    setMaximumHeight(legendHeight + std::max(1, static_cast<int>(m_devices.size())) * greatestRow);
    updateGeometry();
    refresh();
}

QSize MemoryBars::sizeHint() const
{
    return {620, legendHeight + std::max(1, static_cast<int>(m_devices.size())) * rowHeight};
}

QString MemoryBars::label(int device) const
{
    const DeviceMemory& memory = m_devices[device];
    return memory.limit > 0 ? ofWhole(memory.peak, memory.limit) : sizeText(memory.peak);
}

void MemoryBars::refresh()
{
    m_most = 1;
    for (const DeviceMemory& device : m_devices) {
        m_most = std::max(m_most, double(device.peak));
        // A limit far above all peaks is not drawn to scale.
        if (double(device.limit) < 3 * double(device.peak))
            m_most = std::max(m_most, double(device.limit));
    }
    std::vector<Chart::BarPart> bars;
    for (const MemoryKind& kind : kinds()) {
        Chart::BarPart bar{kind.name, kind.color, {}};
        for (const DeviceMemory& device : m_devices)
            bar.values.push_back(double(device.*kind.bytes));
        bars.push_back(std::move(bar));
    }
    m_chart->setStackedBars(bars, static_cast<int>(m_devices.size()), 0.56);
    m_chart->setRange(0, m_most * 1.02, -0.5, double(m_devices.size()) - 0.5);
    m_chart->setForeground([this](QPainter& painter) { paint(painter); });
}

void MemoryBars::paint(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    painter.setFont(Theme::words(TextSize::Small));
    double x = nameWidth;
    for (const MemoryKind& kind : kinds()) {
        painter.fillRect(QRectF(x, 5, 11, 11), kind.color);
        painter.setPen(theme.dim);
        painter.drawText(QPointF(x + 17, 14), kind.name);
        x += 17 + painter.fontMetrics().horizontalAdvance(kind.name) + 20;
    }
    const QRectF plot = m_chart->plotArea();
    const double row = plot.height() / std::max<std::size_t>(1, m_devices.size());
    for (std::size_t i = 0; i < m_devices.size(); ++i) {
        const double y = plot.top() + double(i) * row;
        const DeviceMemory& device = m_devices[i];
        const bool over = device.limit > 0 && device.peak > device.limit;
        painter.setFont(Theme::words());
        painter.setPen(theme.text);
        painter.drawText(QRectF(0, y, nameWidth - 8, row), Qt::AlignLeft | Qt::AlignVCenter, m_names[i]);
        painter.setFont(Theme::numbers(TextSize::Small));
        painter.setPen(over ? theme.bad : theme.dim);
        painter.drawText(QRectF(plot.right() + 12, y, labelWidth - 12, row), Qt::AlignLeft | Qt::AlignVCenter,
                         label(static_cast<int>(i)));
        if (device.limit > 0 && double(device.limit) <= m_most)
            painter.fillRect(QRectF(m_chart->xOf(double(device.limit)), y + 3, 2, row - 6), theme.bad);
    }
}

void MemoryBars::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    m_chart->setGeometry(rect());
}

bool MemoryBars::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const QRectF plot = m_chart->plotArea();
    const int device =
        static_cast<int>((help->pos().y() - plot.top()) / std::max(1.0, plot.height()) * double(m_devices.size()));
    if (help->pos().y() < plot.top() || device >= static_cast<int>(m_devices.size()))
        return true;
    QStringList lines{
        tr("%1 at its peak, %2 into the step").arg(m_names[device], durationText(m_devices[device].time))};
    for (const MemoryKind& kind : kinds())
        lines << tr("%1 %2").arg(kind.name, sizeAmong(m_devices[device].*kind.bytes, m_devices[device].peak));
    QToolTip::showText(help->globalPos(), lines.join(QLatin1Char('\n')), this);
    return true;
}

} // namespace pipewright

#include "moc_memorybars.cpp"
