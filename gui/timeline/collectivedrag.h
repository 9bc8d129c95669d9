// SPDX-License-Identifier: GPL-3.0-or-later
// Moves a collective of a group's members past transfers that the group sends (core/program/collectiveorder.h), in the
// rows of the members. When it passes no transfer, or when a part is dragged, a label says why nothing moves. By key:
// TimelineEdits::moveCollectivePast().
#pragma once

#include "gui/document/memberforecast.h"
#include "gui/timeline/gesture.h"

namespace pipewright {

class CollectiveDrag : public Gesture {
public:
    /// True when the press was on a part or a collective that is drawn by itself.
    static bool press(TimelineParts& d, const QMouseEvent& event);
    CollectiveDrag(TimelineParts& d, int device, const MemberForecast::Part& part, QPoint pressedAt)
        : Gesture(d), m_device(device), m_part(part), m_pressedAt(pressedAt)
    {
    }
    void move(const QMouseEvent& event) override;
    void release(const QMouseEvent& event) override;
    void addTo(OverlayContent& content) const override;
    bool plansBlock() const override { return false; }

private:
    Transfer collective() const { return {m_part.block, 0, m_part.index}; }

    const int m_device;
    const MemberForecast::Part m_part;
    const QPoint m_pressedAt;
    QPoint m_at;
    std::vector<Transfer> m_passed; ///< on the way to the cursor
    bool m_moving = false, m_later = false;
};

} // namespace pipewright
