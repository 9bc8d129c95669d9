// SPDX-License-Identifier: GPL-3.0-or-later
// Peak memory of every device: one bar per device, stacked by kind, with the limit as a red mark and the numbers after
// the bar.
#pragma once

#include "gui/memory/memorykinds.h"

#include <QWidget>

namespace pipewright {

class Chart;

class MemoryBars : public QWidget {
    Q_OBJECT

public:
    explicit MemoryBars(QWidget* parent = nullptr);
    void setDevices(std::vector<DeviceMemory> devices, std::vector<QString> names);
    QString label(int device) const; ///< right of its bar: "27.9 / 80 GiB"
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void resizeEvent(QResizeEvent* event) override;
    bool event(QEvent* event) override;

private:
    std::vector<MemoryKind> kinds() const;
    void refresh();
    void paint(QPainter& painter) const;

    Chart* m_chart;
    std::vector<DeviceMemory> m_devices;
    std::vector<QString> m_names;
    double m_most = 1;
};

} // namespace pipewright
