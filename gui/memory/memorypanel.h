// SPDX-License-Identifier: GPL-3.0-or-later
// Memory over time on the timeline's axis: one row per device, or one device large (the selected block's, or the one
// with the highest peak). The curve of the shown side is filled. With Side::Both the measurement is filled and the
// prediction is a dashed outline; during a drag the prediction of the drop is filled and the present state is the
// outline. The panel shows the value under the cursor. The crosshair time is shared with the lanes in both directions.
#pragma once

#include "gui/memory/memorycontent.h"
#include "gui/memory/memorykinds.h"
#include "gui/widgets/timereadings.h"

#include <QWidget>

class QToolButton;

namespace pipewright {

class MemoryPanel : public QWidget {
    Q_OBJECT

public:
    explicit MemoryPanel(QWidget* parent = nullptr);

    /// The curves are copied, since the axis may change while the document is between two predictions.
    void showDesign(const MemoryContent& content);
    /// What the large device holds at its predicted peak, by kind: bands below its curve, and numbers at the right.
    /// Nothing: only what it holds all the time is named.
    void setKinds(const std::optional<DeviceMemory>& memory);
    /// "activations 27.3 GiB", from the top of the stack down; empty without kinds.
    QStringList kindTexts() const;
    void setAxis(const TimeAxis& axis);
    void setReadings(const TimeReadings& readings);
    int device() const { return m_device; }
    void setAll(bool all);              ///< true: every device, when there is room for their rows; false: one device
    bool showsAll() const;              ///< every device has its row
    QRectF plotArea() const;            ///< of all plots
    QRectF plotOf(int device) const;    ///< null when it is not shown
    QRectF peakPlace(int device) const; ///< where a row's peak is written, clear of the limit's line
    double top() const;                 ///< bytes at the upper edge of a plot
    /// In pixels of this widget, the same x as in the timeline above.
    double xOf(double time) const { return m_axis.xOf(time); }
    double yOf(double bytes) const; ///< in the chosen device's plot
    /// "GPU 1 at 658 ms: 68.9 → 69.1 GiB, predicted → measured"; empty beside the plots.
    QString valueAt(QPointF position) const;
    std::vector<Bytes> axisTicks() const; ///< in bytes, written at the left of a plot
    /// Rectangles painted last, for the test that they are bounded by the pixels.
    int rectangles() const { return m_rectangles; }
    QSize sizeHint() const override { return {600, 190}; }
    QSize minimumSizeHint() const override { return {300, 120}; }

Q_SIGNALS:
    void pointedAt(std::optional<double> time); ///< nanoseconds; nullopt: the cursor has left
    void hovered(const QString& value);
    void modeChanged(); ///< all devices or one: call showDesign() again

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;

private:
    bool fits(std::size_t rows) const; ///< whether there is room for this many rows
    std::vector<int> shownDevices() const;
    int deviceAt(QPointF position) const; ///< -1: none
    void paintRow(QPainter& painter, int device, const QRectF& area) const;
    void paintHeader(QPainter& painter) const;
    QString peakText(int device, bool both) const;
    QString peakWords(int device) const; ///< "peak 77.6 GiB"
    void paintBands(QPainter& painter, const MemoryOfDevice& device, const QRectF& area) const;
    bool paintKinds(QPainter& painter, const QRectF& area) const;
    std::vector<MemoryKind> shownKinds() const; ///< from the bottom of the stack up; those it has none of left out
    void refreshButton();

    QToolButton* m_mode;
    TimeAxis m_axis;
    TimeReadings m_readings;
    std::vector<MemoryOfDevice> m_devices;
    std::optional<DeviceMemory> m_memory; ///< of the large device
    QString m_nothing;                    ///< shown instead of curves
    Side m_side = Side::Predicted;
    bool m_recorded = false; ///< there is an overlay
    bool m_comparesDrag = false;
    bool m_all = true;           ///< whether all devices are wanted
    bool m_fitted = false;       ///< fits() of all rows at the last showDesign() or resize
    bool m_shownAll = false;     ///< whether the curves are those of all devices: wanted, and there is room
    std::optional<int> m_chosen; ///< by a double-click, until another device is passed in
    int m_given = -1;
    int m_device = 0;
    int m_rectangles = 0;
    std::optional<QPointF> m_cursor;
};

} // namespace pipewright
