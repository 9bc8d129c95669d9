// SPDX-License-Identifier: GPL-3.0-or-later
// Places of the lanes of a LaneStrip in a scrolled viewport, and of the blocks and sub-lanes in each lane. It keeps
// references only and computes every result anew.
#pragma once

#include "gui/timeline/lanestrip.h"

#include <QPoint>
#include <QRect>
#include <QRectF>

#include <optional>

class QAbstractScrollArea;

namespace pipewright {

class LanePlaces {
public:
    static constexpr int greatLane = 176; ///< as high as lanes get by themselves in a large window
    static constexpr int roomyLane = 104; ///< a lane with all of its header and its memory below its blocks …
    static constexpr int leastWithMemory = 84;
    static constexpr int tightLane = 44; ///< … and with name and memory bar only
    // With many devices the whole schedule is shown first: the lanes shrink to strips before the view scrolls. With few
    // devices every lane stays legible.
    static constexpr int lowLane = 24, stripLane = 6, manyLanes = 16;
    static constexpr int namedLane = 13; ///< lower ones share their names: every so many rows has one

    /// `headers`: pixels at the left that the labels of the lanes take.
    LanePlaces(const LaneStrip& strip, const QAbstractScrollArea& view, int headers)
        : m_strip(strip), m_view(view), m_headers(headers)
    {
    }
    int pitch() const;                          ///< height of a lane that was given none of its own
    int heightWith(int lanes, int pitch) const; ///< of the view, for so many lanes of that pitch
    // In viewport coordinates; null for a lane, or a part of it, that is not shown.
    QRect lane(int device) const; ///< header included
    QRectF blocks(int device) const;
    QRectF memory(int device) const; ///< of the device's memory over time, below its blocks
    bool showMemory() const;         ///< any lane does
    QRectF idle(int device) const;   ///< of its idle time by cause, beside its blocks
    /// Width of the column of idle time, at the right of a viewport of this width.
    static int idleWidth(int viewport) { return viewport >= 720 ? 132 : viewport >= 460 ? 84 : 0; }
    QRectF transfers(int device) const;
    QRectF kernels(int device) const;
    QRectF members(int device) const;
    QRect unfolder(int device) const; ///< in its label, where a click shows or hides the members
    int at(int y) const;              ///< -1: none
    int memoryAt(QPoint position) const { return partAt(position, &LanePlaces::memory); }       ///< -1: none
    int transfersAt(QPoint position) const { return partAt(position, &LanePlaces::transfers); } ///< -1: none
    int kernelsAt(QPoint position) const { return partAt(position, &LanePlaces::kernels); }     ///< -1: none
    int membersAt(QPoint position) const { return partAt(position, &LanePlaces::members); }     ///< -1: none
    /// The lane whose lower edge the mouse can grip there, in the column of the headers.
    std::optional<int> edgeAt(QPoint position) const;

private:
    int memoryHeight(int device) const;
    int partAt(QPoint position, QRectF (LanePlaces::*part)(int) const) const;

    const LaneStrip& m_strip;
    const QAbstractScrollArea& m_view;
    int m_headers;
};

} // namespace pipewright
