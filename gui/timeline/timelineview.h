// SPDX-License-Identifier: GPL-3.0-or-later
// The timeline: a time ruler, one lane per device with its header, and the blocks, which can be dragged.
// One viewport paints all lanes, so a paint costs pixels and not widgets; a transparent child above it shows what comes
// and goes: dependency arrows, the drop preview and its explanation. A drag never touches the Document before release:
// it evaluates the candidate design, shows that prediction (preview()), and release calls one edit of the Document.
// Charts that share the time axis use axis(): the same x for the same time.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/timereadings.h"

#include <QAbstractScrollArea>
#include <QRectF>

#include <memory>

namespace pipewright {

/// Drags that carry one block (from the tray) use this type; the data is toString(block) as UTF-8.
inline constexpr char blockMimeType[] = "application/x-pipewright-block";

class IdleBars;
class LaneStrip;
class MemberForecast;
class TimelineLayout;
struct TimelineParts;

class TimelineView : public QAbstractScrollArea {
    Q_OBJECT

public:
    explicit TimelineView(Document& document, QWidget* parent = nullptr);
    ~TimelineView() override;

    // The shared time axis, in this widget's coordinates.
    static constexpr int plotLeft() { return 112; } ///< width of the lane headers; charts below leave the same
    int plotWidth() const { return axis().width; }  ///< less the vertical scroll bar, when there is one
    const TimeAxis& axis() const;
    std::pair<Nanoseconds, Nanoseconds> timeRange() const; ///< visible [start, end], rounded outward to 0
    std::pair<Nanoseconds, Nanoseconds>
    visibleRange() const;               ///< the same of the schedule alone, to the nearest nanosecond
    void setAxis(const TimeAxis& axis); ///< start and nsPerPixel count; clamped to the schedule
    void showRange(Nanoseconds start, Nanoseconds end);
    void showAll();
    void frameSelection(); ///< the selected block and its neighbours; when they are framed already: everything
    void zoomBy(double factor, double anchorX);
    void ensureVisible(const Block& block);

    // Reading times: marks, and one measured range.
    void toggleMark(Nanoseconds time);             ///< sets a mark, or takes the one that is there away
    const std::vector<Nanoseconds>& marks() const; ///< sorted
    void setRange(std::optional<std::pair<Nanoseconds, Nanoseconds>> range);
    std::optional<std::pair<Nanoseconds, Nanoseconds>> range() const;
    /// Range over the explained idle time, the selected blocks, or the marks; again: none. Without any of them, over
    /// the visible range.
    void measure();
    void measureByNumbers();       ///< asks for its fields (rangeWantedByNumbers()); without a range, of measure()'s
    TimeReadings readings() const; ///< for charts that share the axis
    /// A line at a time that is pointed at in a chart below; none: no more.
    void pointAt(std::optional<double> time);
    const TimelineLayout& layout() const; ///< of what the lanes show now
    Nanoseconds total() const;            ///< end of what can be shown
    QString
    crosshairText() const; ///< "12 ms, GPU 1 · F1.0, 2 GiB live"; empty while it is off or nothing is under the cursor
    bool showsSlack() const;
    bool showsCriticalPath() const;

    /// Idle time and the chain of blocks that explains it, nearest first: outlined and joined by arrows until
    /// the selection or the design changes.
    struct Reason {
        int device = -1;
        Nanoseconds start = 0, end = 0;
        std::vector<Block> chain;
        std::optional<Block> waiting; ///< the block that ends the idle time
    };
    void showReason(Reason reason);
    const Reason* reason() const; ///< null: none is shown

    /// What a drag in progress would give if dropped now; null without one, or where dropping is illegal.
    const Prediction* preview() const;
    const Design&
    previewDesign() const;     ///< of preview(); the present one where a drag moves no stage, or there is none
    bool isPreviewing() const; ///< something is held over a place, legal or not
    /// For tests: which designs a drag treats as large, see DropPlanner::setLargeFrom().
    void setLargeFrom(double milliseconds);
    const LaneStrip& lanes() const; ///< how they stand; changed by the actions named lane… and by mouse
    int chosenLane() const;         ///< whose label was pressed last, or that of the selected block; -1: neither
    void setLaneHeight(int device,
                       int height);    ///< of all of it, in pixels, clamped; LaneStrip::foldedHeight or less folds it
    void setHeightOfLanes(int height); ///< the same of all lanes, without the transfers that some show
    void setLaneRow(int device, int row); ///< from the top, clamped
    /// Height that shows every lane without scrolling.
    int naturalHeight() const;
    int greatestHeight() const; ///< beyond which more room does not make lanes higher
    QSize sizeHint() const override;
    /// Where a block is drawn now, in viewport coordinates (also when scrolled out of view); null when unplaced.
    QRect rectOfBlock(const Block& block) const;
    QRect rectOfLane(int device) const; ///< in viewport coordinates, header included
    /// The block drawn at a viewport position; measured blocks are asked when an overlay is shown.
    std::optional<Block> blockAt(QPoint position) const;
    // For assistive technology, and for tests that walk the picture.
    int laneCount() const;
    std::vector<Block> visibleBlocks(int device) const; ///< in time order; at most one per pixel
    std::vector<Transfer>
    visibleTransfers(int device) const; ///< in the order of its sub-lane; none while it is not shown
    /// Where the kernels of a device's sub-lane are drawn and what is said about each; none while it is not shown.
    std::vector<std::pair<QRectF, QString>> visibleKernels(int device) const;
    /// The same of the members of a group, and what is said of one; empty while they are not shown or not known yet.
    std::vector<std::pair<QRectF, QString>> visibleMemberParts(int device) const;
    QString textOfMember(int device, int member) const;
    MemberForecast& memberForecast();
    void showMembers(int device, bool shown); ///< of a group; refused for a single device
    std::optional<std::pair<int, Transfer>> transferAt(QPoint position) const; ///< and the device in whose sub-lane
    QString nameOfLane(int device) const; ///< "GPU 1, H200, stage 1, layers 8–15"
    QString nameOfTransfer(int device,
                           const Transfer& transfer) const; ///< "GPU 0 sends F0.1 to GPU 1 as number 2 of 16: …"
    QString nameOfBlock(const Block& block) const;          ///< "F1.0, forward of microbatch 0, stage 1 on GPU 1, …"
    Document& document() const;
    /// Tooltip of a block: name, times with units, source of the cost, slack, bytes. Rich text.
    QString describe(const Block& block) const;
    /// The numbers that stand in a lane: "peak 77.7 / 141 GiB, idle 27.2 %, predicted".
    QString numbersOfLane(int device) const;
    const IdleBars& idle() const;
    QString idleText(int device) const; ///< its idle time with every cause, a line each

    // Several blocks: the Document's selection is one of them. Cleared when another block is selected.
    std::vector<Block> selectedBlocks() const; ///< by device, in time order; the selection alone when there is no other
    void selectBlocks(const std::vector<Block>& blocks);
    // Transfers stand below a lane's blocks when its sub-lane is shown (the actions laneTransfers, allTransfers).
    /// The transfer that was chosen last, or else the first that the selected block sends; and in whose list it is.
    std::optional<Transfer> selectedTransfer(int* device = nullptr) const;
    void selectTransfer(int device, const Transfer& transfer); ///< selects the block that makes what it carries, too
    void
    selectNextTransfer(); ///< of those that carry the selected block's result, at their senders and at their receivers
    QRect rectOfTransfer(int device, const Transfer& transfer) const; ///< null when it is not visible
    enum class Alike { Microbatch, Stage, Op };
    void selectAlike(Alike alike);              ///< all that share this with the selected block; Op: of its stage
    QAction* action(const QString& name) const; ///< one of actions() by its object name; null when there is none

    // What actions of the view do; actions() lists them all, with texts and shortcuts.
    void selectNeighbour(int direction); ///< -1 previous, +1 next block on the device
    /// The same with the other selected blocks kept: `also` the present one, or else in its place.
    void selectNeighbourToo(int direction, bool also);
    void followDependency(int direction); ///< -1 to the block whose value arrived last, +1 to the first consumer
    void moveSelection(int places);       ///< one place earlier or later on its device
    void explainIdleBefore();             ///< as a click on the idle time before the selected block
    void rippleSelection(int places);     ///< one place earlier or later, the rest of its microbatch along
    void selectAll();
    void exchange(const Block& first, const Block& second); ///< two of a device change places
    void cancel(); ///< ends a drag without a change, or else clears the selection

Q_SIGNALS:
    void viewRangeChanged(qint64 start, qint64 end); ///< axis() changed: zoom, pan, resize
    void lanesChanged();                             ///< heights, order, pinned or folded lanes, or which is chosen
    void previewChanged();                           ///< preview() or isPreviewing() changed
    void membersChanged();                           ///< what is known of the members of groups did
    void selectedBlocksChanged();                    ///< selectedBlocks() did, while the Document's selection stays
    void rangeChanged();                             ///< range() did
    void readingsChanged();                          ///< readings() did, but for its ticks: see viewRangeChanged()
    void rangeWantedByNumbers();                     ///< somebody wants to type it; there is one now
    void transferSelected();                         ///< selectTransfer() was called
    /// A click on idle time: the bubble between two blocks of a device (or before the first, after the last).
    void gapClicked(int device, qint64 start, qint64 end);
    /// An edit by keyboard or drop was refused; the text says why and what would help.
    void editRefused(const QString& explanation);
    /// One line about what is under the cursor; empty when there is nothing. For a status bar.
    void hovered(const QString& text);

protected:
    bool viewportEvent(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void changeEvent(QEvent* event) override;
    bool event(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dragMoveEvent(QDragMoveEvent* event) override;
    void dragLeaveEvent(QDragLeaveEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void connectParts();
    void followDocument();
    void refreshMembers();
    void followHeights(); ///< lanes became high enough for their memory, or too low
    void refreshCharts(); ///< memory and idle time in the lanes, of the drag's preview while there is one
    void reload();        ///< after the design changed
    void reloadOverlay(); ///< after the recording did, or which side is shown
    void hover(QPoint position);
    bool hoverTransfer(QPoint position);
    void holdFromTray(const Block& block, const QDropEvent& event);
    QString toolTipAt(QPoint position) const;
    std::optional<std::pair<Nanoseconds, Nanoseconds>>
    measurable() const; ///< what measure() takes; the visible range only where none is measured

    std::unique_ptr<TimelineParts> d;
};

} // namespace pipewright
