// SPDX-License-Identifier: GPL-3.0-or-later
// Several schedules one below another on one time axis, each with its name, its lanes and a line at its end. Blocks use
// the timeline's geometry and painter, so painting costs O(pixels). A click selects a schedule.
#pragma once

#include "gui/document/timelinelayout.h"
#include "gui/widgets/timecoordinates.h"

#include <QAbstractScrollArea>

#include <vector>

namespace pipewright {

class CompareLanes : public QAbstractScrollArea {
    Q_OBJECT

public:
    explicit CompareLanes(QWidget* parent = nullptr);

    struct Schedule {
        QString name;
        QString summary;            ///< beside the name: "202.1 ms"
        TimelineLayout layout;      ///< without lanes when there is nothing to show yet
        std::vector<QString> lanes; ///< names of the devices
        QString note;               ///< shown instead of lanes: a state, or why there are no lanes
    };
    /// A schedule to show; without a prediction `note` replaces its lanes.
    static Schedule scheduleOf(const QString& name, const Design& design, const Prediction* prediction,
                               const QString& note);
    void setSchedules(std::vector<Schedule> schedules);
    void setCurrent(int schedule);
    int current() const { return m_current; }

    const TimeAxis& axis() const { return m_axis; }
    void showAll();
    void zoomBy(double factor, double anchorX);
    void panBy(double pixels);
    QRect rectOfSchedule(int schedule) const; ///< title and lanes, in viewport coordinates

    QSize sizeHint() const override { return {900, 420}; }
    int neededHeight() const { return heightWith(usualLane); } ///< that shows all lanes as they are read well

Q_SIGNALS:
    void chosen(int schedule);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    /// A lane grows with the window. Lower ones keep the second of two schedules of 16 devices in sight; below a
    /// label's height only some of them are named.
    static constexpr int leastLane = 9, usualLane = 38, mostLane = 84;

    int laneCount() const;
    int laneHeight() const;
    int heightWith(int laneHeight) const;
    int heightOf(std::size_t schedule) const;
    void updateScroll();
    void setAxis(TimeAxis axis);
    void paintSchedule(class QPainter& painter, const class TimelinePainter& lanes, const std::vector<double>& times,
                       std::size_t schedule, int top) const;

    std::vector<Schedule> m_schedules;
    Nanoseconds m_total = 0; ///< of the longest
    TimeAxis m_axis;
    int m_current = 0;
    double m_pressedX = 0;
    TimeAxis m_pressedAxis;
};

} // namespace pipewright
