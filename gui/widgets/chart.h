// SPDX-License-Identifier: GPL-3.0-or-later
// The only file that knows Qt Charts (deprecated upstream since 6.10, slow past a few points per pixel).
// A Chart is a bare plot without legend, title and axis text; its plot area is set to the pixel, and captions are
// painted over it. For static content: replacing a series costs milliseconds, so panels that follow a drag
// (MemoryPanel, the lanes) paint themselves.
#pragma once

#include <QColor>
#include <QMargins>
#include <QPointF>
#include <QString>
#include <QWidget>

#include <functional>
#include <vector>

class QChart;
class QChartView;
class QPainter;
class QValueAxis;

namespace pipewright {

class Chart : public QWidget {
    Q_OBJECT

public:
    explicit Chart(QWidget* parent = nullptr);

    /// Where the plot begins and ends, in pixels of this widget.
    void setPlotMargins(int left, int top, int right, int bottom);
    QRectF plotArea() const;
    void setRange(double fromX, double toX, double fromY, double toY);
    void clear();

    void addLine(const std::vector<QPointF>& points, const QColor& color, double width, bool dashed = false);

    struct BarPart {
        QString name;
        QColor color;
        std::vector<double> values; ///< one per row
    };
    /// Horizontal bars, one row each, stacked from the left in the order of the parts. Row 0 is on top.
    void setStackedBars(const std::vector<BarPart>& parts, int rows, double barShare);

    /// Painted above the plot, in this widget's coordinates: captions, limits, labels of bars.
    void setForeground(std::function<void(QPainter&)> paint);

    /// Widget pixels of a value, for captions laid over the plot.
    double xOf(double value) const;
    double yOf(double value) const;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void placePlot();

    QChartView* m_view;
    QChart* m_chart;
    QValueAxis* m_x;
    QValueAxis* m_y;
    QWidget* m_foreground;
    QMargins m_margins{0, 0, 0, 0};
};

} // namespace pipewright
