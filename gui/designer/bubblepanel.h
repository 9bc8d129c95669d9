// SPDX-License-Identifier: GPL-3.0-or-later
// Idle time of each device by cause, as a share of the makespan: one stacked bar per device. Bars are painted directly,
// not as chart items, since they follow every move of a drag.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

namespace pipewright {

class BubblePanel : public QWidget {
    Q_OBJECT

public:
    struct Cause {
        QString name;
        QColor color;
        std::vector<double> shares; ///< per device, of the makespan
    };

    explicit BubblePanel(QWidget* parent = nullptr);

    void showDesign(const Design& design, const Prediction* prediction);
    /// Left edge and width of the plot, as the timeline's.
    void setPlot(int left, int width);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {300, 96}; }
    /// Idle share of the makespan as written beside a device's bar.
    QString percentLabel(int device) const;
    std::vector<Cause> causes() const; ///< in the order of the bars
    QRectF plotArea() const;
    /// Where a share of the makespan ends on a device's bar.
    double xOf(double share) const;

protected:
    void paintEvent(QPaintEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    int rows() const { return static_cast<int>(m_metrics.idleCauses.size()); }
    void paintBars(QPainter& painter, const std::vector<Cause>& causes) const;
    void paintLabels(QPainter& painter, const std::vector<Cause>& causes) const;

    std::vector<QString> m_names;
    Metrics m_metrics;
    double m_longest = 0; ///< share of the makespan that any device idles
    int m_plotLeft = 112;
    int m_plotWidth = 400;
};

} // namespace pipewright
