// SPDX-License-Identifier: GPL-3.0-or-later
// Changes a device's warm-up by the edge between its last forward and its first backward. By key:
// TimelineEdits::changeWarmUp().
#pragma once

#include "gui/timeline/gesture.h"

namespace pipewright {

class WarmUpDrag : public Gesture {
public:
    /// True when the press was on the edge.
    static bool press(TimelineParts& d, const QMouseEvent& event);
    WarmUpDrag(TimelineParts& d, int device) : Gesture(d), m_device(device) {}
    void move(const QMouseEvent& event) override;
    void release(const QMouseEvent& event) override;
    bool plansBlock() const override { return false; }

private:
    const int m_device;
};

} // namespace pipewright
