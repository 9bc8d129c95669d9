// SPDX-License-Identifier: GPL-3.0-or-later
// Drags a block, with the other selected blocks of its lane, to another place in its lane, or drags its stage to
// another device. By key: TimelineEdits::moveBy(), rippleBy() and moveStageBy().
#pragma once

#include "gui/timeline/gesture.h"

#include <QPoint>

namespace pipewright {

class BlockDrag : public Gesture {
public:
    /// True when the press was on a block; with Ctrl or Shift it only changes what is selected.
    static bool press(TimelineParts& d, const QMouseEvent& event);
    BlockDrag(TimelineParts& d, const Block& block, QPointF pressedAt);
    void move(const QMouseEvent& event) override;
    void release(const QMouseEvent& event) override;
    bool changeModifiers(Qt::KeyboardModifiers modifiers) override;
    const HeldBlock* held() const override { return &m_held; }

private:
    void hold(QPoint position, Qt::KeyboardModifiers modifiers);

    HeldBlock m_held;
    const QPoint m_pressedAt;
};

} // namespace pipewright
