// SPDX-License-Identifier: GPL-3.0-or-later
// Pans time and lanes with the middle button, also while another gesture is in progress. By key: A and D or the arrows.
#pragma once

#include "gui/timeline/gesture.h"

#include <QPoint>

namespace pipewright {

class Panning : public Gesture {
public:
    Panning(TimelineParts& d, QPoint from);
    void move(const QMouseEvent& event) override;
    void release(const QMouseEvent& event) override;
    bool dependsOnDesign() const override { return false; }

private:
    QPoint m_from; ///< where the cursor was last
};

} // namespace pipewright
