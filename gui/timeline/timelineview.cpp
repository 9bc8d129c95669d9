// SPDX-License-Identifier: GPL-3.0-or-later
// The widget: it makes its parts, notifies them of each other's changes, and is their common interface. Mouse events
// are in timelineviewmouse.cpp.
#include "gui/timeline/timelineview.h"

#include "gui/timeline/dependencies.h"
#include "gui/timeline/timelineaccessible.h"
#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelinetext.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QElapsedTimer>
#include <QPaintEvent>
#include <QPainter>
#include <QScrollBar>

#include <algorithm>
#include <cmath>

namespace pipewright {

TimelineView::TimelineView(Document& document, QWidget* parent) : QAbstractScrollArea(parent)
{
    installTimelineAccessibility(); // first: naming it makes Qt ask for its interface, and keep that
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Timeline"));
    setAccessibleDescription(tr("One lane per device with the blocks of the schedule in the order they run"));
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    viewport()->setAcceptDrops(true);
    setAcceptDrops(true);
    d = std::make_unique<TimelineParts>(*this, document);
    addTimelineActions(*this, *d);
    connectParts();
    followDocument();
    reload();
    reloadOverlay();
    showAll();
}

TimelineView::~TimelineView()
{
    // Closing finishes an edit in progress, but this view is being destroyed and must not handle its signals.
    disconnect(&d->document, nullptr, this, nullptr);
}

void TimelineView::connectParts()
{
    connect(&d->forecast, &MemberForecast::changed, this, [this] {
        viewport()->update();
        Q_EMIT membersChanged();
    });
    connect(&d->lanes, &Lanes::changed, this, [this] {
        refreshMembers();
        d->scroll.updateBars();
        followHeights();
        d->overlay.update();
        updateGeometry();
        viewport()->update();
        Q_EMIT lanesChanged();
    });
    connect(&d->lanes, &Lanes::choiceChanged, this, [this] {
        d->menus.setChosen(TimelineMenus::Chosen::Lane);
        viewport()->update();
        Q_EMIT lanesChanged();
    });
    connect(&d->scroll, &TimelineScroll::moved, this, [this] {
        d->overlay.update();
        viewport()->update(plotLeft(), 0, plotWidth(), viewport()->height()); // the headers stay
        const auto [start, end] = timeRange();
        Q_EMIT viewRangeChanged(start, end);
    });
    connect(&d->selection, &BlockSelection::counted, this,
            [this](int blocks) { Q_EMIT hovered(tr("%1 blocks selected").arg(blocks)); });
    connect(&d->selection, &BlockSelection::changed, this, [this] {
        Q_EMIT selectedBlocksChanged();
        viewport()->update();
        d->overlay.update();
    });
    connect(&d->drop, &DropSession::previewChanged, this, &TimelineView::refreshCharts);
    connect(&d->drop, &DropSession::previewChanged, this, &TimelineView::previewChanged);
    connect(&d->drop, &DropSession::changed, this, [this] {
        d->overlay.update();
        viewport()->update();
    });
    connect(&d->drop, &DropSession::refused, this, [this](const Diagnostics& why, const EditRequest& request) {
        d->edits.refuse(why, request, d->overlay.cursor());
    });
    connect(&d->overlay, &OverlayComposer::readingsChanged, this, &TimelineView::readingsChanged);
}

void TimelineView::followDocument()
{
    Document& document = d->document;
    connect(&document, &Document::editRefused, this,
            [this](const Diagnostics& diagnostics, const EditRequest& request) {
                d->drop.abandon();
                d->edits.refuse(diagnostics, request);
            });
    connect(&document, &Document::designChanged, this, &TimelineView::reload);
    connect(&document, &Document::memoryChanged, this, [this] {
        d->canvas.refreshHeaders();
        refreshCharts();
        viewport()->update();
    });
    connect(&document, &Document::overlayChanged, this, &TimelineView::reloadOverlay);
    connect(&document, &Document::sideChanged, this, &TimelineView::reloadOverlay);
    connect(&document, &Document::pathChanged, this, [this] {
        if (d->document.undoStack()->count() == 0)
            d->shown.forgetBefore(); // that was another design
    });
    connect(&document, &Document::selectionChanged, this, [this] {
        d->scroll.forgetFrame();
        d->overlay.explain(std::nullopt);
        d->selection.documentChanged();
        d->lanes.forgetChoice();
        d->menus.setChosen(TimelineMenus::Chosen::Block);
        announceSelection(*this);
        viewport()->update();
        d->overlay.update();
    });
}

// ---- What is shown --------------------------------------------------------------------------------

void TimelineView::reload()
{
    const bool whole = d->scroll.showsWhole();
    d->shown.reload();
    d->canvas.reload();
    d->transfers.forget();
    d->overlay.explain(std::nullopt);
    d->drop.scheduleChanged();
    if (d->hand.left && d->hand.left->dependsOnDesign())
        d->hand.left.reset();
    d->selection.scheduleChanged();
    d->scroll.updateBars();
    refreshMembers();
    refreshCharts();
    d->scroll.keep(whole);
    d->overlay.update();
    updateGeometry();
    viewport()->update();
}

void TimelineView::reloadOverlay()
{
    const bool whole = d->scroll.showsWhole(); // a recording is often longer
    d->shown.reloadOverlay();
    d->canvas.refreshHeaders();
    refreshCharts();
    d->scroll.keep(whole);
    d->scroll.updateBars();
    d->overlay.update();
    viewport()->update();
}

void TimelineView::refreshCharts()
{
    const Prediction* const present = d->document.prediction();
    const Prediction* const shown = preview() ? preview() : present;
    const Document::Overlay* const overlay = isPreviewing() ? nullptr : d->document.overlay();
    const Side side = d->shown.side();
    d->idle.show(previewDesign(), shown, overlay, side);
    MemoryContent content{previewDesign(), shown, overlay, side};
    content.pending =
        preview() ? (isMemoryPending(previewDesign(), *shown) ? std::optional(pendingUntilDrop()) : std::nullopt)
                  : d->document.pendingMemory();
    content.present = preview() ? present : nullptr;
    if (!d->lanes.places().showMemory())
        d->memory.clear(); // lanes that are too low do not copy curves
    else if (content.samples() <= mostMemorySamples || !isPreviewing())
        d->memory.show(content);
    viewport()->update();
}

void TimelineView::followHeights()
{
    if (d->memory.empty() == d->lanes.places().showMemory())
        refreshCharts();
}

const IdleBars& TimelineView::idle() const
{
    return d->idle;
}

QString TimelineView::idleText(int device) const
{
    QStringList lines{tr("%1 of the makespan idle, %2").arg(d->idle.percentLabel(device), sideName(d->shown.side()))};
    for (const IdleBars::Cause& cause : d->idle.causes(Theme::of(*this)))
        if (device < std::ssize(cause.shares) && cause.shares[device] > 0)
            lines << tr("%1: %2").arg(cause.name, percentText(cause.shares[device]));
    return lines.join(QLatin1Char('\n'));
}

void TimelineView::paintEvent(QPaintEvent* event)
{
    QElapsedTimer timer;
    timer.start();
    {
        QPainter painter(viewport());
        d->canvas.paint(painter, viewport()->rect(), event->rect(), verticalScrollBar()->value());
    }
    if (!d->frames.isOn)
        return;
    const std::optional<double> worst = d->frames.add(static_cast<double>(timer.nsecsElapsed()) / 1e6);
    if (!worst)
        return;
    // Setting the text during a paint would schedule another paint; the queued call is shown with the next one.
    QMetaObject::invokeMethod(
        this, [this, text = tr("worst paint %1\u00a0ms").arg(*worst, 0, 'f', 2)] { d->overlay.setFrameTime(text); },
        Qt::QueuedConnection);
}

void TimelineView::resizeEvent(QResizeEvent* event)
{
    QAbstractScrollArea::resizeEvent(event);
    d->overlay.fit(viewport()->rect());
    d->scroll.fitWidth();
    followHeights();
    Q_EMIT lanesChanged(); // they share what height there is
    d->overlay.update();
}

void TimelineView::scrollContentsBy(int dx, int)
{
    if (dx != 0)
        d->scroll.followTimeBar();
    d->overlay.update();
    viewport()->update();
}

void TimelineView::changeEvent(QEvent* event)
{
    QAbstractScrollArea::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange)
        viewport()->update();
}

const TimelineLayout& TimelineView::layout() const
{
    return d->shown.layout();
}

Nanoseconds TimelineView::total() const
{
    return d->shown.total();
}

bool TimelineView::showsSlack() const
{
    return d->canvas.shows(LaneCanvas::Mark::Slack);
}

bool TimelineView::showsCriticalPath() const
{
    return d->canvas.shows(LaneCanvas::Mark::Critical);
}

const Prediction* TimelineView::preview() const
{
    return d->drop.prediction();
}

const Design& TimelineView::previewDesign() const
{
    return d->drop.design();
}

bool TimelineView::isPreviewing() const
{
    return d->drop.plan() != nullptr;
}

void TimelineView::setLargeFrom(double milliseconds)
{
    d->drop.setLargeFrom(milliseconds);
}

QSize TimelineView::sizeHint() const
{
    return {plotLeft() + 800, naturalHeight()};
}

Document& TimelineView::document() const
{
    return d->document;
}

// ---- The shared axis ------------------------------------------------------------------------------

const TimeAxis& TimelineView::axis() const
{
    return d->scroll.axis();
}

std::pair<Nanoseconds, Nanoseconds> TimelineView::timeRange() const
{
    return {static_cast<Nanoseconds>(std::floor(std::max(0.0, axis().start))),
            static_cast<Nanoseconds>(std::ceil(std::max(0.0, axis().end())))};
}

std::pair<Nanoseconds, Nanoseconds> TimelineView::visibleRange() const
{
    const auto inside = [this](double time) { return std::clamp<Nanoseconds>(std::llround(time), 0, total()); };
    return {inside(axis().start), inside(axis().end())};
}

void TimelineView::setAxis(const TimeAxis& axis)
{
    d->scroll.setAxis(axis);
}

void TimelineView::showRange(Nanoseconds start, Nanoseconds end)
{
    d->scroll.showRange(static_cast<double>(start), static_cast<double>(end));
}

void TimelineView::showAll()
{
    d->scroll.showAll();
}

void TimelineView::frameSelection()
{
    d->scroll.frame(d->document.selection());
}

void TimelineView::zoomBy(double factor, double anchorX)
{
    d->scroll.zoomBy(factor, anchorX);
}

void TimelineView::ensureVisible(const Block& block)
{
    d->scroll.ensureVisible(block);
}

// ---- Lanes and blocks -----------------------------------------------------------------------------

const LaneStrip& TimelineView::lanes() const
{
    return d->lanes.strip();
}

int TimelineView::chosenLane() const
{
    return d->lanes.chosen();
}

void TimelineView::setLaneHeight(int device, int height)
{
    d->lanes.setHeight(device, height);
}

void TimelineView::setHeightOfLanes(int height)
{
    d->lanes.setHeightOfAll(height);
}

void TimelineView::setLaneRow(int device, int row)
{
    if (device >= 0 && device < lanes().lanes())
        d->lanes.change([&](LaneStrip& strip) { strip.move(device, row); });
}

int TimelineView::naturalHeight() const
{
    return d->lanes.places().heightWith(laneCount(), LanePlaces::roomyLane);
}

int TimelineView::greatestHeight() const
{
    return d->lanes.places().heightWith(laneCount(), LanePlaces::greatLane);
}

int TimelineView::laneCount() const
{
    return d->shown.lanes();
}

QRect TimelineView::rectOfLane(int device) const
{
    return d->lanes.places().lane(device);
}

QString TimelineView::nameOfLane(int device) const
{
    return laneDescription(d->document.design(), device);
}

QRect TimelineView::rectOfBlock(const Block& block) const
{
    return d->map.rectOf(block).toAlignedRect();
}

std::optional<Block> TimelineView::blockAt(QPoint position) const
{
    return d->map.blockAt(position);
}

std::vector<Block> TimelineView::visibleBlocks(int device) const
{
    return d->map.visibleBlocks(device);
}

QString TimelineView::nameOfBlock(const Block& block) const
{
    int device = -1;
    const std::optional<LaneBlock> found = d->shown.find(block, &device);
    if (!found)
        return {};
    const TimelineLayout* const recorded = d->shown.measured();
    const LaneBlock* const measured = recorded ? recorded->blockOf(block) : nullptr;
    const LaneBlock* const predicted = d->shown.showsMeasured() ? d->shown.present().blockOf(block) : &*found;
    return blockName(d->document.design(), predicted ? *predicted : *found, device, predicted ? measured : nullptr,
                     d->shown.side());
}

QString TimelineView::describe(const Block& block) const
{
    const TimelineLayout& present = d->shown.present();
    const std::optional<TimelineLayout::Place> place = present.find(block);
    if (!place)
        return {};
    BlockFacts facts;
    facts.device = place->device;
    facts.predicted = *present.blockOf(block);
    facts.slack = d->canvas.slackOf(facts.predicted.task);
    if (const TimelineLayout* const recorded = d->shown.measured())
        facts.measured = recorded->blockOf(block);
    facts.side = d->shown.side();
    return blockToolTip(d->document.design(), facts);
}

// ---- Sub-lanes ------------------------------------------------------------------------------------

std::vector<Transfer> TimelineView::visibleTransfers(int device) const
{
    std::vector<Transfer> result;
    const std::vector<IssuedTransfer>& list = d->transfers.of(device);
    int pixel = -1; // ticks may share one; then one stands for them
    for (const TransferLanes::Chips::Chip& chip : d->map.chips(device).shown)
        if (const int x = static_cast<int>(chip.rect.left()); x != pixel) {
            result.push_back(list[chip.index].transfer);
            pixel = x;
        }
    return result;
}

std::optional<std::pair<int, Transfer>> TimelineView::transferAt(QPoint position) const
{
    const std::optional<std::size_t> chip = d->map.chipAt(position);
    if (!chip)
        return std::nullopt;
    const int device = d->lanes.places().transfersAt(position);
    return std::pair(device, d->transfers.of(device)[*chip].transfer);
}

QString TimelineView::nameOfTransfer(int device, const Transfer& transfer) const
{
    const std::vector<IssuedTransfer>& list = d->transfers.of(device);
    for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].transfer == transfer)
            return d->transfers.text(device, i, d->shown.transferTimes());
    return {};
}

QRect TimelineView::rectOfTransfer(int device, const Transfer& transfer) const
{
    const std::vector<IssuedTransfer>& list = d->transfers.of(device);
    for (const TransferLanes::Chips::Chip& chip : d->map.chips(device).shown)
        if (list[chip.index].transfer == transfer)
            return chip.rect.toAlignedRect();
    return {};
}

std::vector<std::pair<QRectF, QString>> TimelineView::visibleKernels(int device) const
{
    std::vector<std::pair<QRectF, QString>> result;
    for (const KernelLanes::Rect& kernel : d->map.kernels(device))
        result.emplace_back(kernel.rect, d->kernels.text(kernel));
    return result;
}

} // namespace pipewright

#include "moc_timelineview.cpp"
