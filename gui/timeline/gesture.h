// SPDX-License-Identifier: GPL-3.0-or-later
// A mouse gesture in a timeline, from the press to the release. Each kind of drag is a class in its own file; its
// press() starts it. TimelineEdits has the same edits by keyboard. The view owns the gestures in progress
// (GestureInHand) and passes the events to them.
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
    /// The view has already taken the gesture out of GestureInHand, so an edit made here finds no gesture in progress.
    virtual void release(const QMouseEvent& event) = 0;
    /// Undoes what move() showed. The same holds as for release().
    virtual void cancel();
    /// A modifier key was pressed or released while the cursor rests.
    virtual bool changeModifiers(Qt::KeyboardModifiers) { return false; }
    virtual void addTo(OverlayContent&) const {}
    /// False for a gesture that edits of the design do not affect. The others end when the design changes.
    virtual bool dependsOnDesign() const { return true; }
    /// Whether its plan is for the block that is drawn at the cursor.
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
