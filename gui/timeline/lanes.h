// SPDX-License-Identifier: GPL-3.0-or-later
// The lanes of a timeline: their order and heights, their places in the viewport, and which of them is chosen. Every
// change of order and heights goes through change(), which emits a signal.
#pragma once

#include "gui/timeline/laneplaces.h"
#include "gui/timeline/lanestrip.h"

#include <QObject>

#include <functional>

namespace pipewright {

class Document;
class ShownSchedule;

class Lanes : public QObject {
    Q_OBJECT

public:
    Lanes(const QAbstractScrollArea& view, const Document& document, const ShownSchedule& shown);

    const LaneStrip& strip() const { return m_strip; }
    const LanePlaces& places() const { return m_places; }
    /// As many as the schedule has devices, sharing the height of the viewport.
    void arrange();
    void change(const std::function<void(LaneStrip& strip)>& change);
    void setHeight(int device, int height); ///< folds it where that is not enough
    void setHeightOfAll(int height);        ///< likewise

    int pressed() const { return m_pressed; } ///< whose label was pressed last; -1: none
    int chosen() const;                       ///< that, or the lane of the selected block; -1: neither
    int forKeys() const;                      ///< that, or the topmost; -1: there is none
    void choose(int device);
    int neighbour(int rows) const; ///< so many rows below chosen(); the topmost before any is chosen
    void forgetChoice() { m_pressed = -1; }

Q_SIGNALS:
    void changed();       ///< order, heights, folding or pinning
    void choiceChanged(); ///< chosen(), by choose()

private:
    const Document& m_document;
    const ShownSchedule& m_shown;
    LaneStrip m_strip;
    LanePlaces m_places; ///< of the strip's lanes in the viewport
    int m_pressed = -1;
};

} // namespace pipewright
