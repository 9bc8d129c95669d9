// SPDX-License-Identifier: GPL-3.0-or-later
// Idle time of each device by cause, as a share of the makespan: one stacked bar per device. The scale begins at the x
// of time zero and is 0 to 50 %, or 0 to 100 % when a device idles more than that. On side Both the bar is the measured
// value and an outline the predicted one. Bars are painted directly, not as chart items, since they change with every
// move of a drag.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/timereadings.h"

#include <QWidget>

namespace pipewright {

class BubblePanel : public QWidget {
    Q_OBJECT

public:
    struct Cause {
        QString name;
        QColor color;
        Qt::BrushStyle texture = Qt::SolidPattern; ///< so that causes differ without colour
        std::vector<double> shares;                ///< per device, of the makespan
    };

    explicit BubblePanel(QWidget* parent = nullptr);

    /// `side`: Predicted where there is no overlay.
    void showDesign(const Design& design, const Prediction* prediction, const Document::Overlay* overlay = nullptr,
                    Side side = Side::Predicted);
    void setAxis(const TimeAxis& axis); ///< the timeline's
    void setReadings(const TimeReadings& readings);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {300, 96}; }
    /// Idle share of the makespan as written beside a device's bar.
    QString percentLabel(int device) const;
    std::vector<Cause> causes() const; ///< in the order of the bars
    QRectF plotArea() const;
    bool hasLegendBelow() const; ///< of what the colours mean
    /// Where a share of the makespan ends on a device's bar.
    double xOf(double share) const;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    int rows() const { return static_cast<int>(m_names.size()); }
    void paintScale(QPainter& painter) const;
    void paintBars(QPainter& painter, const std::vector<Cause>& causes) const;
    void paintLabels(QPainter& painter, const std::vector<Cause>& causes) const;

    std::vector<QString> m_names;
    Side m_side = Side::Predicted;
    bool m_recorded = false;                  ///< there is an overlay
    std::vector<double> m_predicted;          ///< idle share, by device
    std::vector<double> m_measured;           ///< likewise; empty without an overlay
    std::vector<std::vector<double>> m_parts; ///< by cause, then device: of the side that is filled
    double m_scale = 0.5;
    TimeAxis m_axis;
    TimeReadings m_readings;
};

} // namespace pipewright
