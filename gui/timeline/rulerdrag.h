// SPDX-License-Identifier: GPL-3.0-or-later
// Draws the measured range on the ruler. By key: TimelineView::measure().
#pragma once

#include "core/base/units.h"
#include "gui/timeline/gesture.h"

#include <utility>

namespace pipewright {

class RulerDrag : public Gesture {
public:
    /// True when the press was on the ruler.
    static bool press(TimelineParts& d, const QMouseEvent& event);
    using Gesture::Gesture;
    void move(const QMouseEvent& event) override;
    void release(const QMouseEvent& event) override;
    void cancel() override;
    bool dependsOnDesign() const override { return false; }

private:
    Nanoseconds m_from = 0;
    std::optional<std::pair<Nanoseconds, Nanoseconds>> m_before; ///< the range that was there
    bool m_moving = false;
};

} // namespace pipewright
