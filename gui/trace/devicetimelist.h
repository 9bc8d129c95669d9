// SPDX-License-Identifier: GPL-3.0-or-later
// Where the devices of an imported trace spent a stretch of time: one row per device with the share of every cause, the
// one that holds up the others marked, and below each its longest gaps, each a jump into the trace. Below the devices
// stand the links between them, slowest first.
#pragma once

#include "traces/analysis/devicetime.h"

#include <QTreeWidget>

namespace pipewright {

class DeviceTimeList : public QTreeWidget {
    Q_OBJECT

public:
    explicit DeviceTimeList(QWidget* parent = nullptr);
    void setTimes(const DeviceTimes& times, const StoredActivities& trace);
    int deviceCount() const { return static_cast<int>(m_times.devices.size()); } ///< rows; those of links follow

Q_SIGNALS:
    void gapChosen(const pipewright::DeviceTime::Gap& gap);
    void deviceChosen(int rank, int device);

private:
    void addLinks();

    DeviceTimes m_times;
};

} // namespace pipewright
