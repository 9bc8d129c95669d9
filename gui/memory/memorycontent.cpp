// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/memory/memorycontent.h"

#include <algorithm>

namespace pipewright {

std::size_t MemoryContent::samples() const
{
    std::size_t count = 0;
    for (const Timeline* timeline :
         {prediction && !pending ? &prediction->timeline : nullptr, overlay ? &overlay->measured : nullptr})
        if (timeline)
            for (const std::vector<MemorySample>& curve : timeline->memory)
                count += curve.size();
    return count;
}

std::vector<MemoryOfDevice> memoryOfDevices(const MemoryContent& content, const std::function<bool(int)>& wanted)
{
    const auto curveOf = [](const Timeline* timeline, std::size_t device) {
        return timeline && device < timeline->memory.size() ? StepCurve(timeline->memory[device]) : StepCurve();
    };
    const Timeline* const predicted = content.prediction && !content.pending ? &content.prediction->timeline : nullptr;
    const Timeline* const measured = content.overlay ? &content.overlay->measured : nullptr;
    const Side side = content.overlay ? content.side : Side::Predicted;
    std::vector<MemoryOfDevice> devices;
    for (int d = 0; content.prediction && d < std::ssize(content.prediction->program.devices); ++d) {
        MemoryOfDevice device;
        device.name = deviceLabel(content.design, d);
        if (wanted(d)) {
            device.filled = curveOf(side == Side::Predicted ? predicted : measured, d);
            if (side == Side::Both)
                device.outlined = curveOf(predicted, d);
            else if (side == Side::Predicted && (content.comparesDrag() || (content.pending && content.present)))
                device.outlined = curveOf(&content.present->timeline, d);
        }
        device.persistent = content.pending ? 0 : content.prediction->program.devices[d].persistentBytes;
        if (d < std::ssize(content.design.cluster.devices))
            device.limit = content.design.cluster.devices[d].memory;
        devices.push_back(std::move(device));
    }
    return devices;
}

double topOfPlots(const std::vector<const MemoryOfDevice*>& devices)
{
    Bytes most = 1, limit = 0;
    for (const MemoryOfDevice* device : devices) {
        most = std::max({most, device->filled.peak().bytes, device->outlined.peak().bytes});
        limit = std::max(limit, device->limit);
    }
    if (limit < 8 * most) // a limit far above the peaks would flatten the curves
        most = std::max(most, limit);
    return static_cast<double>(most) * 1.1;
}

} // namespace pipewright
