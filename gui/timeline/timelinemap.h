// SPDX-License-Identifier: GPL-3.0-or-later
// Maps the items of a timeline to the places where they are drawn, and a point back to the item there. All in viewport
// coordinates. It keeps references only and computes every result anew.
#pragma once

#include "gui/timeline/kernellanes.h"
#include "gui/timeline/memberlanes.h"
#include "gui/timeline/transferlanes.h"

#include <QPoint>
#include <QRect>

#include <optional>

class QWidget;

namespace pipewright {

class LanePlaces;
class Lanes;
class ShownSchedule;
class TimelineScroll;

/// Idle time between two blocks of a device, before the first or after the last.
struct IdleTime {
    int device = -1;
    Nanoseconds start = 0, end = 0;
};

class TimelineMap {
public:
    struct SubLanes {
        const TransferLanes& transfers;
        const KernelLanes& kernels;
        const MemberLanes& members;
    };
    /// The sources: the schedule, the lanes, the visible time range, and the sub-lanes.
    TimelineMap(const QWidget& viewport, const Document& document, const ShownSchedule& shown, const Lanes& lanes,
                const TimelineScroll& scroll, const SubLanes& sub);

    const TimeAxis& axis() const;
    const LanePlaces& places() const;
    double scale() const; ///< device pixels per pixel
    QRect plot() const;   ///< below the ruler, beside the headers

    QRectF rectOf(const Block& block) const; ///< also when scrolled out of view; null when it is not shown
    std::optional<Block> blockAt(QPoint position) const;
    std::vector<Block> blocksIn(const QRect& rect) const; ///< those that are ordered
    std::vector<Block> visibleBlocks(int device) const;   ///< in time order; at most one per pixel
    std::optional<IdleTime> idleAt(QPoint position) const;
    std::optional<int> warmUpEdgeAt(QPoint position) const; ///< the device whose warm-up can be gripped there

    TransferLanes::Chips chips(int device) const;
    std::optional<std::size_t> chipAt(QPoint position) const; ///< in the list of the device whose sub-lane is there
    std::vector<KernelLanes::Rect> kernels(int device) const;
    QString kernelTextAt(QPoint position) const;
    QString memberTextAt(QPoint position) const;
    /// The predicted part or collective of a member at a point.
    std::optional<MemberLanes::Rect> memberPartAt(QPoint position) const;
    QString gradientSumTextAt(QPoint position) const;
    int unfolderAt(QPoint position) const; ///< the group whose unfold sign is there; -1: none

    /// The time at a point, snapped to a block's edge nearby: an edge of the lane there, on the ruler of any lane. Alt:
    /// not snapped.
    Nanoseconds timeNear(double x, int y, Qt::KeyboardModifiers modifiers) const;
    double markReach() const; ///< within this distance a click hits a mark, in nanoseconds

private:
    const QWidget& m_viewport;
    const Document& m_document;
    const ShownSchedule& m_shown;
    const Lanes& m_lanes;
    const TimelineScroll& m_scroll;
    const SubLanes m_sub;
};

} // namespace pipewright
