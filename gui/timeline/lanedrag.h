// SPDX-License-Identifier: GPL-3.0-or-later
// Resizes a lane by the line below it, with Shift all of them, or moves it to another row by its label. By key: the
// actions named lane….
#pragma once

#include "gui/timeline/gesture.h"
#include "gui/timeline/lanestrip.h"

#include <QPoint>

namespace pipewright {

class LaneDrag : public Gesture {
public:
    /// True when the press was on the label or the lower line of a lane.
    static bool press(TimelineParts& d, const QMouseEvent& event);
    using Gesture::Gesture;
    void move(const QMouseEvent& event) override;
    void release(const QMouseEvent&) override {}
    void cancel() override;
    bool dependsOnDesign() const override { return false; }

private:
    int m_device = -1;
    bool m_byEdge = false; ///< its height; otherwise its place
    bool m_all = false;    ///< the height of all lanes
    bool m_moving = false;
    QPoint m_pressedAt;
    LaneStrip m_before;
};

} // namespace pipewright
