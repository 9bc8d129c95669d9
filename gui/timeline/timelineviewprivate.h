// SPDX-License-Identifier: GPL-3.0-or-later
// What the source files and gestures of TimelineView share: layouts of what is shown, the gesture in progress, geometry
// of lanes. Included by the view's own source files and its gestures only.
#pragma once

#include "gui/timeline/dropplanner.h"
#include "gui/timeline/framemeter.h"
#include "gui/timeline/gesture.h"
#include "gui/timeline/kernellanes.h"
#include "gui/timeline/laneplaces.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/memberlanes.h"
#include "gui/timeline/readings.h"
#include "gui/timeline/refusalnote.h"
#include "gui/timeline/shownlayouts.h"
#include "gui/timeline/slackanalysis.h"
#include "gui/timeline/timelineoverlay.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/timeline/timelineview.h"
#include "gui/timeline/transferlanes.h"

#include <QAction>
#include <QKeySequence>

#include <functional>
#include <initializer_list>
#include <unordered_set>

class QMenu;

namespace pipewright {

struct TimelineView::Private {
    Private(TimelineView& view, Document& document);
    ~Private();

    static constexpr int margin = 10; ///< pixels free before time 0 and after the end
    static constexpr double snapPixels = 48;

    TimelineView& view;
    Document& document;
    TimelineOverlay* overlay = nullptr;

    ShownLayouts layouts; ///< of what the lanes show now, before, or over a recording
    /// Of the Document's prediction, which may be made on another thread.
    const TimelineLayout& layout() const { return layouts.present(); }
    bool stretchOutlines = false; ///< to the length of the measured step
    bool showHeat = false;        ///< measured blocks by how far they are off
    void paintStripNames(QPainter& painter, const QRect& visible, bool pinned) const;
    std::vector<LaneHeader> headers, previewHeaders;
    SlackAnalysis slack; ///< of the present prediction
    bool showCritical = false;
    bool showSlack = false;
    bool showBefore = false; ///< also when nothing is dragged
    /// What is outlined in a lane besides its blocks: the state before, or the prediction of what was measured.
    std::optional<LaneGeometry> outlined(int device, const QRectF& area) const;
    Readings readings;
    double markReach() const; ///< of the mouse, in nanoseconds
    std::optional<std::pair<Nanoseconds, Nanoseconds>>
    measurable() const; ///< what measure() takes; the visible range only where none is measured

    std::optional<Reason> reason; ///< of idle time that was clicked

    std::unique_ptr<Gesture> gesture;              ///< of the left button
    std::unique_ptr<Gesture> panning;              ///< of the middle button, which may interrupt the other
    const Gesture::HeldBlock* held() const;        ///< a block that the mouse has pressed; null: none
    const Gesture::HeldBlock* movingBlock() const; ///< and moved
    void hover(QPoint position);
    DropPlanner planner;
    std::optional<DropPlan> plan;
    QPoint cursor;
    bool framed = false; ///< frameSelection() was the last change of the view

    // Lanes (timelineviewlanes.cpp).
    LaneStrip strip;
    LanePlaces places;    ///< of the strip's lanes in the viewport
    int currentLane = -1; ///< whose label was pressed last; -1: that of the selection
    void arrangeLanes();
    void lanesChanged();
    void chooseLane(int lane);
    int laneForKeys() const;
    void chooseLaneBy(int rows); ///< the lane so many rows below that of the keys
    void ensureLaneVisible(int device);
    void addLaneActions();

    // Sub-lanes with transfers (timelineviewtransfers.cpp).
    TransferLanes transferLanes;
    const Timeline& transferTimes() const; ///< at which the chips stand
    std::optional<std::pair<int, Transfer>>
        chosenTransfer; ///< and the device in whose list; holds while its block is selected
    TransferLanes::Chips chips(int device) const;
    std::optional<std::size_t> chipAt(QPoint position) const;
    bool hoverTransfer(QPoint position);
    /// One that the view's keys reach while it has the focus; `run` is called when it is triggered.
    QAction* addAction(const char* name, const QString& text, const QString& tip, const QKeySequence& key,
                       const std::function<void()>& run);
    void addTransferActions();

    // Sub-lanes with the kernels of measured blocks (timelineviewkernels.cpp).
    KernelLanes kernelLanes;
    std::vector<KernelLanes::Rect> kernelRects(int device) const;
    QString kernelTextAt(QPoint position) const;
    void showKernels(int device, bool shown);
    void addKernelActions();

    // Groups unfolded into their members (timelineviewmembers.cpp).
    MemberForecast forecast;
    MemberLanes memberLanes;
    QString memberTextAt(QPoint position) const;
    void showMembers(int device, bool shown);
    void wantMembers();
    void addMemberActions();

    // Geometry, all in viewport coordinates.
    int lanes() const { return static_cast<int>(layout().lanes().size()); }
    QRect plotRect() const;
    double scale() const { return view.viewport()->devicePixelRatioF(); }

    /// What the lanes show now, and the prediction they are compared with (null when it is the same).
    const TimelineLayout& shown() const;
    /// A drag is planned, marked and judged at predicted times, so these are what the lanes show meanwhile.
    Side shownSide() const { return layouts.measured() && !plan ? document.side() : Side::Predicted; }
    bool showsMeasured() const { return shownSide() != Side::Predicted; }
    bool showsBoth() const { return shownSide() == Side::Both; }
    Nanoseconds total() const;
    bool showsWhole() const; ///< and not a stretch that somebody has zoomed to
    void reload();           ///< after the design changed
    void reloadOverlay();    ///< after the trace changed
    void refreshHeaders();
    void updateScrollBars();
    void setAxis(TimeAxis axis, bool keepFramed = false);
    void addActions();

    void paint(QPainter& painter, const QRect& exposed);
    void paintLane(QPainter& painter, int device, const QRect& exposed, const std::vector<double>& ticks);
    std::optional<TimelinePainter> lanePainter; ///< of the look and scale last painted in
    FrameMeter frames;

    // Readings (timelineviewruler.cpp).
    bool showCrosshair = false;
    bool hovering = false;              ///< the cursor is over the viewport
    std::optional<Nanoseconds> pointed; ///< in a chart below
    TimeReadings handedOut;
    const std::vector<double>& ticks() const; ///< of the ruler
    mutable TimeAxis ticksOf;
    mutable std::vector<double> knownTicks;
    void addCrosshair(OverlayContent& content) const;
    Nanoseconds snapped(double x, int y, Qt::KeyboardModifiers modifiers) const;
    void addReadings(OverlayContent& content) const;
    // The trace laid over it (timelineviewmeasured.cpp).
    void alignOutlines();
    void paintMeasured(QPainter& painter, int device, const Lane& blocks, const LaneGeometry& geometry,
                       const QRectF& area);
    void veilByError(QPainter& painter, const Lane& lane, const QRectF& area);
    void paintLegend(QPainter& painter);

    // Several blocks (timelineviewselect.cpp).
    std::unordered_set<Block, TimelineLayout::Hash> group; ///< empty, or at least two with the selection among them
    void toggleInGroup(const Block& block);
    void extendTo(const Block& block);
    std::optional<Block> neighbour(int direction) const; ///< of the selection on its device
    std::vector<Block> movingWith(const Block& block) const;
    void exchangeHalves(bool split); ///< or merge them, of the selected blocks
    bool moveGroup(int places);      ///< false when the selection stands alone on its device
    void commitOrder(const ReorderDevice& order);
    std::optional<int> warmUpEdgeAt(QPoint position) const;

    // Drags.
    void updatePlan(const Block& block, QPoint position, Qt::KeyboardModifiers modifiers);
    bool arriving = false; ///< the present plan was dropped, and the design that it gives is on its way
    void setPlan(std::optional<DropPlan> plan);
    bool commitPlan(); ///< true when the Document changed
    void updateOverlay();
    void addReason(OverlayContent& content) const;
    void addArrows(OverlayContent& content, const Block& subject) const;
    void addGhost(OverlayContent& content, const Block& block) const;
    struct Idle {
        int device = -1;
        Nanoseconds start = 0, end = 0;
    };
    std::optional<Idle> idleAt(QPoint position) const;

    // Menus (timelineviewmenus.cpp).
    enum class Chosen { Block, Transfer, Lane, Idle, Ruler };
    Chosen chosen = Chosen::Block; ///< what the menu key means: the last that was chosen, by whatever hand
    bool isDragging() const;
    void showMenuOfChosen();
    void showBlockMenu(QPoint position);
    void showLaneMenu(int lane, QPoint position);
    void showTransferMenu(int device, QPoint position);
    void showIdleMenu(const Idle& idle, QPoint position);
    void showRulerMenu(Nanoseconds time, QPoint position);
    QMenu* menuOf(std::initializer_list<const char*> names) const; ///< actions by their names; "": a line
    void popUp(QMenu& menu, QPoint position) const;
    std::optional<LaneBlock> findShown(const Block& block, int* device) const;
    RefusalNote* refusal = nullptr;
    /// Says why an edit is forbidden, if it is, and offers what would help, at the cursor or else at the selection.
    void refuse(const Diagnostics& diagnostics, const EditRequest& request, bool atCursor = false);
    void applyOrRefuse(const EditRequest& request) { refuse(document.apply(request), request); }
    QString toolTipAt(QPoint position) const;
};

} // namespace pipewright
