// SPDX-License-Identifier: GPL-3.0-or-later
// What the mouse is doing in a timeline between a press and its release. Each kind of drag is a class of its own, in a
// file with its start (press()); TimelineEdits has its keyboard twin. The view owns the one in progress, in a
// GestureInHand, and hands it the events.
#pragma once

#include "core/schedule/block.h"

#include <QPoint>
#include <QPointF>

#include <memory>
#include <optional>

class QMouseEvent;

namespace pipewright {

struct OverlayContent;
struct TimelineParts;

class Gesture {
public:
    explicit Gesture(TimelineParts& d) : d(d) {}
    virtual ~Gesture() = default;
    Gesture(const Gesture&) = delete;
    Gesture& operator=(const Gesture&) = delete;

    virtual void move(const QMouseEvent& event) = 0;
    /// The view has let go of the gesture already, so that an edit made here finds none in progress.
    virtual void release(const QMouseEvent& event) = 0;
    /// Undoes what move() showed. The same holds as for release().
    virtual void cancel();
    /// A modifier key was pressed or released while the cursor rests.
    virtual bool changeModifiers(Qt::KeyboardModifiers) { return false; }
    virtual void addTo(OverlayContent&) const {}
    /// False when it changes what no edit of the design touches. Others end when the design changes.
    virtual bool dependsOnDesign() const { return true; }
    /// Whether the plan that it makes is of the block that hangs at the cursor.
    virtual bool plansBlock() const { return true; }
    virtual bool hidesCrosshair() const { return false; }

    struct HeldBlock {
        Block block;
        QPointF grab;        ///< from the block's top left to the press
        bool moving = false; ///< beyond the start distance
    };
    virtual const HeldBlock* held() const { return nullptr; }

protected:
    static bool isBeyondStart(QPoint pressedAt, QPoint position);

    TimelineParts& d;
};

/// The gestures in progress: one of the left button, and one of the middle button, which may interrupt the other.
struct GestureInHand {
    std::unique_ptr<Gesture> left, middle;

    const Gesture::HeldBlock* held() const { return left ? left->held() : nullptr; } ///< a block that was pressed
    const Gesture::HeldBlock* moving() const                                         ///< and moved
    {
        return held() && held()->moving ? held() : nullptr;
    }
};

} // namespace pipewright
