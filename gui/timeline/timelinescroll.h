// SPDX-License-Identifier: GPL-3.0-or-later
// What stretch of time and which lanes a timeline shows: its axis, its two scroll bars, and what zooms, pans or brings
// something into view.
#pragma once

#include "gui/widgets/timecoordinates.h"

#include <QObject>
#include <QPoint>

#include <optional>
#include <vector>

class QAbstractScrollArea;

namespace pipewright {

class Lanes;
class ShownSchedule;
struct Block;

class TimelineScroll : public QObject {
    Q_OBJECT

public:
    TimelineScroll(QAbstractScrollArea& view, Lanes& lanes, const ShownSchedule& shown);

    const TimeAxis& axis() const { return m_axis; }
    const std::vector<double>& ticks() const; ///< of the ruler
    void setAxis(TimeAxis axis);              ///< start and nsPerPixel count; clamped to the schedule
    void showRange(double start, double end);
    void showAll();
    void panBy(double pixels);
    void panByMouse(QPoint pixels); ///< time, and lanes
    void scrollLanes(int pixels);   ///< downward
    void zoomBy(double factor, double anchorX);
    /// A block and its neighbours; none, or framed already since the last selection: everything.
    void frame(const std::optional<Block>& block);
    void forgetFrame() { m_isFramed = false; }
    void ensureVisible(const Block& block);
    void ensureLaneVisible(int device);

    /// After what can be shown has changed: a view of the whole schedule stays one, and a view that was zoomed
    /// in stays there. Ask showsWhole() before the change.
    bool showsWhole() const;
    void keep(bool whole);
    void updateBars();
    void followTimeBar(); ///< after it was moved
    void fitWidth();      ///< after the viewport was resized

Q_SIGNALS:
    void moved(); ///< axis() changed

private:
    int roomForTime() const; ///< between the headers and the column of idle time
    void moveTo(TimeAxis axis);

    QAbstractScrollArea& m_view;
    Lanes& m_lanes;
    const ShownSchedule& m_shown;
    TimeAxis m_axis;
    bool m_isFramed = false; ///< frame() was the last change of the view
    mutable TimeAxis m_ticksOf;
    mutable std::vector<double> m_ticks;
};

} // namespace pipewright
