// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the lanes, the ruler and the legend of a timeline: only the visible part, and the work of each lane is bounded
// by its pixels. It also holds the switches for the marks in the lanes (slack, critical path, errors, the state before
// the last edit).
#pragma once

#include "gui/timeline/slackanalysis.h"
#include "gui/timeline/timelinepainter.h"

#include <QCoreApplication>

#include <array>
#include <optional>

namespace pipewright {

class BlockSelection;
class Document;
class DropSession;
class IdleBars;
class KernelLanes;
class LaneMemory;
class Lanes;
class ShownSchedule;
class MemberLanes;
class TimelineMap;
class TimelineScroll;
class TransferLanes;
struct GestureInHand;

class LaneCanvas {
    Q_DECLARE_TR_FUNCTIONS(TimelineView)

public:
    struct Sources {
        const Document& document;
        const ShownSchedule& shown;
        const Lanes& lanes;
        const TimelineMap& map;
        const TimelineScroll& scroll;
        const TransferLanes& transfers;
        const KernelLanes& kernels;
        const MemberLanes& members;
        const LaneMemory& memory;
        const IdleBars& idle;
        const BlockSelection& selection;
        const DropSession& drop;
        const GestureInHand& hand;
    };
    LaneCanvas(const QWidget& view, Sources sources) : m_view(view), m(sources) {}

    void reload();         ///< the design changed
    void refreshHeaders(); ///< the recording changed
    const std::vector<LaneHeader>& headers() const { return m_headers; }
    void paint(QPainter& painter, const QRect& viewport, const QRect& exposed, int scrolled);

    enum class Mark { Critical, Slack, Heat, Before };
    void show(Mark mark, bool on);
    bool shows(Mark mark) const { return m_marks[static_cast<std::size_t>(mark)]; }
    std::optional<Nanoseconds> slackOf(TaskId task); ///< none while there is no prediction

private:
    void paintLane(QPainter& painter, int device, const QRect& exposed);
    void paintHeader(QPainter& painter, int device, const QRect& above, const LaneGround& ground);
    void paintBlocks(QPainter& painter, int device, const LaneGround& ground);
    void paintSelection(QPainter& painter, int device);
    void paintStripNames(QPainter& painter, const QRect& visible, bool pinned) const;
    void paintMeasured(QPainter& painter, int device, const Lane& blocks, const LaneGeometry& geometry,
                       const QRectF& area);
    void veilByError(QPainter& painter, const Lane& lane, const QRectF& area) const;
    void paintLegend(QPainter& painter);
    /// The outlines in a lane: the blocks before the last edit, or the prediction of a measured step.
    std::optional<LaneGeometry> outlined(int device, const QRectF& area) const;
    LaneGeometry geometryOf(const TimelineLayout& layout, int device, const QRectF& area) const;

    const QWidget& m_view;
    const Sources m;
    std::vector<LaneHeader> m_headers;
    SlackAnalysis m_slack; ///< of the present prediction
    std::array<bool, 4> m_marks{};
    std::optional<TimelinePainter> m_painter; ///< for the theme and scale of the last paint
};

} // namespace pipewright
