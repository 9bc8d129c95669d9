// SPDX-License-Identifier: GPL-3.0-or-later
// Peak memory (x) against what should be small besides (y: the bubble, or the step), one point per schedule or plan:
// the Pareto front as a step line with the names of its points where there is room, the device memory as a red line,
// the current schedule as a ring. The point under the cursor or selected by arrow keys is labelled; a click or Return
// takes it. The wheel, + and - zoom, dragging the background pans, Home shows all.
#pragma once

#include "core/base/units.h"

#include <QString>
#include <QWidget>

#include <optional>
#include <vector>

namespace pipewright {

class Chart;

class TradeOffPlot : public QWidget {
    Q_OBJECT

public:
    /// What the second axis shows.
    enum class Value {
        Bubble, ///< a share, from 0 on
        Step,   ///< nanoseconds, from the shortest on, as its memory is from the least on
    };
    explicit TradeOffPlot(Value value, QWidget* parent = nullptr);
    /// For a column beside other things, which says what the axes are: without numbers at them and names beside points,
    /// always all of it; the point under the cursor is named.
    void makeSmall();

    struct Point {
        QString name;
        double memory = 0; ///< bytes, or multiples of a microbatch's activations
        double value = 0;
        bool onFront = false;
        bool possible = true; ///< others are not drawn
    };
    /// The evaluated points so far. `inBytes`: what their memory is.
    void setPoints(std::vector<Point> points, bool inBytes);
    /// The schedule in the timeline, as (memory, value); `limit` is the least memory of a device (0: not known).
    void setPresent(std::optional<QPointF> present, Bytes limit);
    int current() const { return m_current; } ///< index into the points; -1: none
    void setCurrent(int point);
    QPointF positionOf(int point) const; ///< in this widget's coordinates
    int pointAt(QPointF position) const; ///< the nearest within reach, -1: none
    bool isOnFront(int point) const { return m_points[point].onFront; }
    /// A name beside the front, and its place; points that lie on one another share one name.
    struct Name {
        QString text;
        QRectF place;
    };
    std::vector<Name> namesOnFront() const;
    void zoomBy(double factor, QPointF around); ///< more than 1: closer
    void panBy(QPointF pixels);
    void showAll();
    QRectF shown() const { return m_shown; } ///< memory from left to right, the value from top() up to bottom()
    QSize sizeHint() const override { return m_small ? QSize(200, 128) : QSize(640, 420); }

Q_SIGNALS:
    void currentChanged(int point);
    void taken(int point);

protected:
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void refresh();
    void paint(QPainter& painter) const;
    QString memoryText(double memory) const;
    QString valueText(double value) const;
    QRectF valueCaption() const; ///< where the second axis is named

    const Value m_value;
    bool m_small = false;
    Chart* m_chart;
    std::vector<Point> m_points;
    bool m_inBytes = true; ///< otherwise memory is in microbatches
    std::optional<QPointF> m_present;
    Bytes m_limit = 0;
    void setShown(const QRectF& range);
    void paintAxes(QPainter& painter) const;
    void paintLabel(QPainter& painter) const; ///< of the current point

    QRectF m_whole{0, 0, 1, 1}; ///< the range of all points
    QRectF m_shown{0, 0, 1, 1};
    bool m_all = true;             ///< everything is shown: the range grows with the points
    std::optional<QPointF> m_held; ///< during a pan: the last mouse position
    int m_current = -1;
};

} // namespace pipewright
