// SPDX-License-Identifier: GPL-3.0-or-later
// Moves a transfer to another place of its device's list, in the sub-lane below the blocks. By key:
// TimelineEdits::moveTransferBy().
#pragma once

#include "gui/timeline/gesture.h"

#include <QPoint>

namespace pipewright {

class TransferDrag : public Gesture {
public:
    /// True when the press was in a sub-lane, on a transfer or beside.
    static bool press(TimelineParts& d, const QMouseEvent& event);
    TransferDrag(TimelineParts& d, int device, int from, QPoint pressedAt)
        : Gesture(d), m_device(device), m_from(from), m_pressedAt(pressedAt)
    {
    }
    void move(const QMouseEvent& event) override;
    void release(const QMouseEvent& event) override;
    void addTo(OverlayContent& content) const override;
    bool plansBlock() const override { return false; }

private:
    void plan(int to);

    const int m_device;
    const int m_from; ///< in the device's list
    const QPoint m_pressedAt;
    bool m_moving = false;
};

} // namespace pipewright
