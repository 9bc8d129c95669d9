// SPDX-License-Identifier: GPL-3.0-or-later
// The memory of a lane's device, below its blocks: its curve with the limit, on one scale for all lanes.
#pragma once

#include "gui/memory/memorycontent.h"

class QPainter;

namespace pipewright {

class LaneMemory {
public:
    void show(const MemoryContent& content);
    void clear() { m_devices.clear(); }
    bool empty() const { return m_devices.empty(); }
    void paint(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis, const Theme& theme,
               double scale) const;
    /// "GPU 1 at 658 ms: 68.9 GiB, predicted"; empty where it is not known.
    QString valueAt(int device, double time) const;

private:
    std::vector<MemoryOfDevice> m_devices;
    double m_top = 1;
    Side m_side = Side::Predicted;
};

} // namespace pipewright
