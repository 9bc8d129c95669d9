// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of one device over time on the timeline's axis: persistent bytes, live activations above them, the limit as a
// red line, the measured curve over the prediction. Shows the selected block's device, or the fullest one. Painted as
// one rectangle per pixel column, since it follows every move of a drag.
#pragma once

#include "gui/document/document.h"
#include "gui/memory/stepcurve.h"
#include "gui/widgets/timecoordinates.h"

#include <QWidget>

class QLabel;

namespace pipewright {

class MemoryPanel : public QWidget {
    Q_OBJECT

public:
    explicit MemoryPanel(QWidget* parent = nullptr);

    /// What to show; `prediction` and `overlay` may be null. The device's curves are copied, since the axis may change
    /// while the document is between two predictions.
    void showDesign(const Design& design, const Prediction* prediction, const Document::Overlay* overlay, int device);
    void setAxis(const TimeAxis& axis);
    int device() const { return m_device; }
    QRectF plotArea() const;
    /// Pixels of this widget, as the timeline's above it.
    double xOf(double time) const { return m_axis.xOf(time); }
    double yOf(double bytes) const;
    /// Rectangles painted last, for the test that they are bounded by the pixels.
    int rectangles() const { return m_rectangles; }
    QSize sizeHint() const override { return {600, 190}; }
    QSize minimumSizeHint() const override { return {300, 120}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void refresh();
    void paintCurves(QPainter& painter);
    void paintCaptions(QPainter& painter) const;
    Bytes highest() const; ///< value at the plot's top
    bool showsLimit() const;

    QLabel* m_deviceName;
    QLabel* m_peak;
    QLabel* m_when;
    TimeAxis m_axis;
    bool m_predicted = false;
    StepCurve m_curve, m_measured;
    int m_rectangles = 0;
    int m_device = 0;
    Bytes m_limit = 0;
    Bytes m_persistent = 0;
};

} // namespace pipewright
