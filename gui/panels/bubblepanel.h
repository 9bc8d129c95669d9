// SPDX-License-Identifier: GPL-3.0-or-later
// Where each device's idle time goes: one bar per device, stacked by cause, as a share of the makespan.
#pragma once

#include "gui/document.h"

#include <QWidget>

namespace pipewright {

class Chart;

class BubblePanel : public QWidget {
    Q_OBJECT

public:
    explicit BubblePanel(QWidget* parent = nullptr);

    void showDesign(const Design& design, const Prediction* prediction);
    /// Left edge and width of the plot, as the timeline's.
    void setPlot(int left, int width);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {300, 96}; }
    /// Idle share of the makespan as written beside a device's bar.
    QString percentLabel(int device) const;

protected:
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    struct Cause {
        QString name;
        QColor color;
        std::vector<double> shares; ///< per device, of the makespan
    };
    void refresh();
    void paintLabels(QPainter& painter) const;
    std::vector<Cause> causes() const;

    Chart* m_chart;
    std::vector<QString> m_names;
    Metrics m_metrics;
    int m_plotLeft = 112;
    int m_plotWidth = 400;
};

} // namespace pipewright
