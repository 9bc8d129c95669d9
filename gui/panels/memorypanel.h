// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of one device over time, on the timeline's x axis: weights and optimizer state as the ground,
// live activations above it, the device's limit as a red line, the measured curve over the prediction.
// Shows the device of the selected block, or the fullest one.
#pragma once

#include "gui/document.h"
#include "gui/timeline/timecoordinates.h"

#include <QWidget>

class QLabel;

namespace pipewright {

class Chart;

class MemoryPanel : public QWidget {
    Q_OBJECT

public:
    explicit MemoryPanel(QWidget* parent = nullptr);

    /// What to show; `prediction` and `overlay` may be null. The device's curves are copied, since the axis
    /// may change while the document is between two predictions.
    void showDesign(const Design& design, const Prediction* prediction, const Document::Overlay* overlay, int device);
    void setAxis(const TimeAxis& axis);
    int device() const { return m_device; }
    const Chart& chart() const { return *m_chart; }
    QSize sizeHint() const override { return {600, 190}; }
    QSize minimumSizeHint() const override { return {300, 120}; }

protected:
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void refresh();
    void paintCaptions(QPainter& painter) const;

    Chart* m_chart;
    QLabel* m_deviceName;
    QLabel* m_peak;
    QLabel* m_when;
    TimeAxis m_axis;
    bool m_predicted = false;
    std::vector<MemorySample> m_curve, m_measured;
    int m_device = 0;
    Bytes m_limit = 0;
    Bytes m_persistent = 0;
};

} // namespace pipewright
