// SPDX-License-Identifier: GPL-3.0-or-later
// Memory over time on the timeline's axis, of every device in a row of its own, or of one device large: the selected
// block's, or the fullest. The side that is shown is filled; under Both the measurement is filled and the prediction a
// dashed outline, during a drag the prediction of the drop is filled and the present state the outline. Under the
// cursor the panel says the value; the time there goes to the lanes, and theirs comes back.
#pragma once

#include "gui/document/document.h"
#include "gui/memory/memorycurve.h"
#include "gui/widgets/timereadings.h"

#include <QWidget>

class QToolButton;

namespace pipewright {

class MemoryPanel : public QWidget {
    Q_OBJECT

public:
    explicit MemoryPanel(QWidget* parent = nullptr);

    struct Content {
        const Design& design;
        const Prediction* prediction = nullptr;     ///< null: the placed blocks cannot run
        const Document::Overlay* overlay = nullptr; ///< null: none
        Side side = Side::Predicted;                ///< Predicted without an overlay
        const Prediction* present = nullptr;        ///< of a drag: what it is compared with
        int device = 0;                             ///< the one that is shown large
        std::optional<PendingMemory> pending{};     ///< of the prediction: it has no curves
    };
    /// The curves are copied, since the axis may change while the document is between two predictions.
    void showDesign(const Content& content);
    void setAxis(const TimeAxis& axis);
    void setReadings(const TimeReadings& readings);
    int device() const { return m_device; }
    void setAll(bool all);              ///< every device, as far as there is room for their rows; or one
    bool showsAll() const;              ///< it does
    QRectF plotArea() const;            ///< of all plots
    QRectF plotOf(int device) const;    ///< null when it is not shown
    QRectF peakPlace(int device) const; ///< of a row's peak in words: clear of the line of the limit
    double top() const;                 ///< bytes at the upper edge of a plot
    /// In which so many devices have rows of their own, as low as they can be read.
    int compactHeight(int devices) const;
    /// Pixels of this widget, as the timeline's above it.
    double xOf(double time) const { return m_axis.xOf(time); }
    double yOf(double bytes) const; ///< in the chosen device's plot
    /// "GPU 1 at 658 ms: 68.9 → 69.1 GiB, predicted → measured"; empty beside the plots.
    QString valueAt(QPointF position) const;
    std::vector<Bytes> axisTicks() const; ///< values that are written at the left of a plot
    /// Rectangles painted last, for the test that they are bounded by the pixels.
    int rectangles() const { return m_rectangles; }
    QSize sizeHint() const override { return {600, 190}; }
    QSize minimumSizeHint() const override { return {300, 120}; }

Q_SIGNALS:
    void pointedAt(std::optional<double> time); ///< nanoseconds; none: the cursor has left
    void hovered(const QString& value);
    void modeChanged(); ///< showsAll() did: hand in the curves again

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    bool fits(std::size_t rows) const; ///< so many rows
    std::vector<int> shownDevices() const;
    int deviceAt(QPointF position) const; ///< -1: none
    void paintRow(QPainter& painter, int device, const QRectF& area) const;
    void paintHeader(QPainter& painter) const;
    QString peakText(int device, bool both) const;
    QString peakWords(int device) const; ///< of a row: "peak 77.6 GiB"
    void refreshButton();

    QToolButton* m_mode;
    TimeAxis m_axis;
    TimeReadings m_readings;
    std::vector<MemoryOfDevice> m_devices;
    QString m_nothing; ///< in place of curves
    Side m_side = Side::Predicted;
    bool m_recorded = false; ///< there is an overlay
    bool m_comparesDrag = false;
    bool m_all = true;           ///< wanted …
    bool m_fitted = false;       ///< their rows, when the size last changed
    bool m_shownAll = false;     ///< … and there is room: what the curves were made for
    std::optional<int> m_chosen; ///< by a double-click, until the selection is another
    int m_given = -1;
    int m_device = 0;
    int m_rectangles = 0;
    std::optional<QPointF> m_cursor;
};

} // namespace pipewright
