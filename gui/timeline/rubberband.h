// SPDX-License-Identifier: GPL-3.0-or-later
// Selects the blocks in a rectangle drawn from beside the blocks. Without a move it is a click on idle time. By key:
// BlockSelection::alsoSelect() and selectAll().
#pragma once

#include "gui/timeline/gesture.h"

#include <QPoint>

namespace pipewright {

class RubberBand : public Gesture {
public:
    /// Tried after all other gestures: begins at any press in the lanes, and clears the selection.
    static bool press(TimelineParts& d, const QMouseEvent& event);
    RubberBand(TimelineParts& d, QPoint from) : Gesture(d), m_from(from) {}
    void move(const QMouseEvent& event) override;
    void release(const QMouseEvent& event) override;
    void addTo(OverlayContent& content) const override;
    bool dependsOnDesign() const override { return false; }
    bool hidesCrosshair() const override { return true; }

private:
    const QPoint m_from;
};

} // namespace pipewright
