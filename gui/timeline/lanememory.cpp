// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lanememory.h"

#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {

void LaneMemory::show(const MemoryContent& content)
{
    m_side = content.overlay ? content.side : Side::Predicted;
    m_devices = memoryOfDevices(content, [](int) { return true; });
    std::vector<const MemoryOfDevice*> all;
    for (const MemoryOfDevice& device : m_devices)
        all.push_back(&device);
    m_top = topOfPlots(all);
}

void LaneMemory::paint(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis, const Theme& theme,
                       double scale) const
{
    if (area.isEmpty() || device >= std::ssize(m_devices))
        return;
    (void)MemoryCurve(axis, QRectF(axis.left, area.top(), axis.width, area.height()), m_top)
        .paint(painter, m_devices[device], theme, scale);
}

QString LaneMemory::valueAt(int device, double time) const
{
    if (device < 0 || device >= std::ssize(m_devices) || m_devices[device].filled.empty())
        return {};
    const MemoryOfDevice& of = m_devices[device];
    const auto bytes = [time](const StepCurve& curve) {
        return curve.empty() ? std::nullopt : std::optional(curve.valueAt(time));
    };
    return QCoreApplication::translate("TimelineView", "%1 at %2: %3, %4")
        .arg(of.name, durationText(std::max<Nanoseconds>(0, std::llround(time))),
             sidedSizes(m_side, bytes(m_side == Side::Both ? of.outlined : of.filled), bytes(of.filled)),
             sideName(m_side));
}

} // namespace pipewright
