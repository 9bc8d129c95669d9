// SPDX-License-Identifier: GPL-3.0-or-later
// Time by cause of the devices of an imported trace: one row per device with shares, the straggler marked, and below it
// its longest gaps, which link into the trace. Then the links between devices, slowest first.
#pragma once

#include "traces/analysis/devicetime.h"

#include <QTreeWidget>

namespace pipewright {

class DeviceTimeList : public QTreeWidget {
    Q_OBJECT

public:
    explicit DeviceTimeList(QWidget* parent = nullptr);
    void setTimes(const DeviceTimes& times, const StoredActivities& trace);
    int deviceCount() const { return static_cast<int>(m_times.devices.size()); } ///< rows; the rows of links follow

Q_SIGNALS:
    void gapChosen(const pipewright::DeviceTime::Gap& gap);
    void deviceChosen(int rank, int device);

private:
    void addLinks();

    DeviceTimes m_times;
};

} // namespace pipewright
