// SPDX-License-Identifier: GPL-3.0-or-later
// What the parts of TimelineView share: layouts of what is shown, the drag in progress, geometry of lanes.
// Included by the view's own source files only.
#pragma once

#include "gui/timeline/dropplan.h"
#include "gui/timeline/timelinelayout.h"
#include "gui/timeline/timelineoverlay.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/timeline/timelineview.h"

#include <QElapsedTimer>
#include <QTimer>

#include <functional>

namespace pipewright {

struct TimelineView::Private {
    Private(TimelineView& view, Document& document) : view(view), document(document) {}

    static constexpr int margin = 10;      ///< pixels free before time 0 and after the end
    static constexpr int roomyLane = 74;   ///< a lane with all of its header …
    static constexpr int tightLane = 44;   ///< … and with name and memory bar only
    static constexpr double snapPixels = 48;
    static constexpr double slowMilliseconds = 25; ///< an evaluation that a moving cursor cannot wait for

    TimelineView& view;
    Document& document;
    TimelineOverlay* overlay = nullptr;

    TimelineLayout layout;                  ///< of the Document's prediction
    std::optional<TimelineLayout> measured; ///< of the trace laid over it
    std::optional<TimelineLayout> previewLayout;
    std::vector<LaneHeader> headers, previewHeaders;
    mutable std::vector<Nanoseconds> slack; ///< per task; computed when first asked for
    std::vector<char> critical;             ///< per task; empty: not shown
    bool showCritical = false;
    bool showSlack = false;
    Nanoseconds greatestSlack = -1; ///< of any block; -1: not known yet
    std::vector<Nanoseconds> marks; ///< sorted
    std::optional<std::pair<Nanoseconds, Nanoseconds>> range;
    std::optional<Nanoseconds> rulerPress; ///< a range is being drawn on the ruler from here

    std::optional<Reason> reason; ///< of idle time that was clicked

    // A drag of a block, by mouse or from the tray.
    struct Drag {
        Block block;
        QPoint pressedAt;
        QPointF grab;       ///< from the block's top left to the press
        bool moving = false; ///< beyond the start distance
    };
    std::optional<Drag> drag;
    std::optional<DropPlan> plan;
    QPoint cursor;
    QTimer planTimer; ///< runs while a plan is postponed
    std::function<void()> postponedPlan;
    std::optional<QPoint> panFrom; ///< middle button
    bool framed = false;           ///< frameSelection() was the last change of the view

    // Geometry, all in viewport coordinates.
    int lanes() const { return static_cast<int>(layout.lanes().size()); }
    int lanePitch() const;
    QRect laneRect(int device) const;
    QRectF blockArea(int device) const; ///< where the blocks of a lane stand
    QRect plotRect() const;
    int laneAt(int y) const; ///< -1: none
    double scale() const { return view.viewport()->devicePixelRatioF(); }

    /// What the lanes show now, and the prediction they are compared with (null when it is the same).
    const TimelineLayout& shown() const;
    Nanoseconds total() const;
    void reload();          ///< after the design changed
    void reloadOverlay();   ///< after the trace changed
    void updateScrollBars();
    void setAxis(TimeAxis axis, bool keepFramed = false);
    void addActions();

    void paint(QPainter& painter, const QRect& exposed);
    void paintLane(QPainter& painter, int device, const QRect& exposed, const std::vector<double>& ticks);
    std::optional<TimelinePainter> lanePainter; ///< of the look and scale last painted in
    QElapsedTimer frameClock;
    double worstFrame = 0; ///< milliseconds, of the present half second

    // Readings (timelineviewruler.cpp).
    Nanoseconds snapped(double x, int y, Qt::KeyboardModifiers modifiers) const;
    void addReadings(OverlayContent& content) const;
    void veilBySlack(QPainter& painter, const Lane& lane, const QRectF& area);
    void paintLegend(QPainter& painter);

    // Drags.
    /// While the cursor moves: at once, or for schedules that take long to predict, when it rests a moment.
    void followCursor(const Block& block, QPoint position, Qt::KeyboardModifiers modifiers);
    void updatePlan(const Block& block, QPoint position, Qt::KeyboardModifiers modifiers);
    void setPlan(std::optional<DropPlan> plan);
    bool commitPlan(); ///< true when the Document changed
    void updateOverlay();
    std::optional<LaneBlock> findShown(const Block& block, int* device) const;
    void refuse(const Diagnostics& diagnostics);
    QString toolTipAt(QPoint position) const;
};

} // namespace pipewright
