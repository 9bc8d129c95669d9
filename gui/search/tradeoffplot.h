// SPDX-License-Identifier: GPL-3.0-or-later
// Peak memory (x) against bubble (y), one point per schedule: the Pareto front as a step line with the names of its
// schedules where there is room, the device memory as a red line, the current schedule as a ring. The point under the
// cursor or selected by arrow keys is labelled; a click or Return takes it. The wheel, + and - zoom, dragging the
// background pans, Home shows all.
#pragma once

#include "core/search/tradeoffs.h"

#include <QWidget>

#include <optional>

namespace pipewright {

class Chart;

class TradeOffPlot : public QWidget {
    Q_OBJECT

public:
    explicit TradeOffPlot(QWidget* parent = nullptr);

    /// The evaluated points so far; impossible ones are not drawn.
    void setPoints(const std::vector<TradeOff>& points);
    /// The schedule in the timeline, as a point; `limit` is the least memory of a device (0: not known).
    void setPresent(std::optional<TradeOff> present, Bytes limit);
    int current() const { return m_current; } ///< index into the points; -1: none
    void setCurrent(int point);
    QPointF positionOf(int point) const; ///< in this widget's coordinates
    int pointAt(QPointF position) const; ///< the nearest within reach, -1: none
    bool isOnFront(int point) const { return m_front[point]; }
    /// A name beside the front, and its place; schedules with nearly equal memory and bubble share one name.
    struct Name {
        QString text;
        QRectF place;
    };
    std::vector<Name> namesOnFront() const;
    void zoomBy(double factor, QPointF around); ///< more than 1: closer
    void panBy(QPointF pixels);
    void showAll();
    QRectF shown() const { return m_shown; } ///< memory from left to right, bubble from top() up to bottom()
    QSize sizeHint() const override { return {640, 420}; }

Q_SIGNALS:
    void currentChanged(int point);
    void taken(int point);

protected:
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void refresh();
    void paint(QPainter& painter) const;
    QString memoryText(double memory) const;
    bool inBytes() const; ///< whether memory is shown in bytes; otherwise in microbatches

    Chart* m_chart;
    std::vector<TradeOff> m_points;
    std::vector<bool> m_front;
    std::optional<TradeOff> m_present;
    Bytes m_limit = 0;
    void setShown(const QRectF& range);
    void paintAxes(QPainter& painter) const;
    void paintLabel(QPainter& painter) const; ///< of the current point

    double m_mostMemory = 1, m_mostBubble = 1;
    QRectF m_shown{0, 0, 1, 1};
    bool m_all = true;             ///< everything is shown: the range grows with the points
    std::optional<QPointF> m_held; ///< during a pan: the last mouse position
    int m_current = -1;
};

} // namespace pipewright
