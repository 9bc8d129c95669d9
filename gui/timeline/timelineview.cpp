// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelineview.h"

#include "gui/timeline/gesture.h"
#include "gui/timeline/timelineaccessible.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineviewprivate.h"

#include <QResizeEvent>
#include <QScrollBar>

#include <algorithm>
#include <cmath>

namespace pipewright {

TimelineView::TimelineView(Document& document, QWidget* parent)
    : QAbstractScrollArea(parent), d(std::make_unique<Private>(*this, document))
{
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Timeline"));
    setAccessibleDescription(tr("One lane per device with the blocks of the schedule in the order they run"));
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    viewport()->setAcceptDrops(true);
    setAcceptDrops(true);
    d->overlay = new TimelineOverlay(viewport());
    d->refusal = new RefusalNote(document, viewport());
    connect(&d->planner, &DropPlanner::refined, this, [this](const DropPlan& plan) {
        if (d->plan && d->plan->isSamePlace(plan))
            d->setPlan(plan);
    });
    connect(&document, &Document::editRefused, this,
            [this](const Diagnostics& diagnostics, const EditRequest& request) {
                d->arriving = false;
                d->setPlan(std::nullopt);
                d->refuse(diagnostics, request);
            });
    d->addActions();
    d->addLaneActions();
    d->addTransferActions();
    d->addKernelActions();
    d->addMemberActions();
    installTimelineAccessibility();
    m_axis.left = plotLeft();

    connect(&document, &Document::designChanged, this, [this] { d->reload(); });
    connect(&document, &Document::overlayChanged, this, [this] { d->reloadOverlay(); });
    connect(&document, &Document::sideChanged, this, [this] { d->reloadOverlay(); });
    connect(&document, &Document::pathChanged, this, [this] {
        if (d->document.undoStack()->count() == 0)
            d->layouts.forgetBefore(); // that was another design
    });
    connect(&document, &Document::selectionChanged, this, [this] {
        d->framed = false;
        d->reason.reset();
        const std::optional<Block> selected = d->document.selection();
        if (!selected || !d->group.contains(*selected))
            d->group.clear();
        d->currentLane = -1;
        d->chosen = Private::Chosen::Block;
        announceSelection(*this);
        viewport()->update();
        d->updateOverlay();
    });
    d->reload();
    d->reloadOverlay();
    showAll();
}

TimelineView::Private::Private(TimelineView& view, Document& document)
    : view(view), document(document), planner(document), places(strip, view, plotLeft()), transferLanes(document),
      kernelLanes(document), forecast(document), memberLanes(document, forecast)
{
}

TimelineView::Private::~Private() = default;

const Gesture::HeldBlock* TimelineView::Private::held() const
{
    return gesture ? gesture->held() : nullptr;
}

const Gesture::HeldBlock* TimelineView::Private::movingBlock() const
{
    const Gesture::HeldBlock* block = held();
    return block && block->moving ? block : nullptr;
}

TimelineView::~TimelineView()
{
    // Closing settles an edit that is under way, and nobody is left here to show it.
    disconnect(&d->document, nullptr, this, nullptr);
}

// ---- Geometry -------------------------------------------------------------------------------------

QRect TimelineView::Private::plotRect() const
{
    return {plotLeft(), TimelinePainter::rulerHeight, view.m_axis.width,
            view.viewport()->height() - TimelinePainter::rulerHeight};
}

const TimelineLayout& TimelineView::Private::shown() const
{
    if (layouts.preview())
        return *layouts.preview();
    return showsMeasured() ? *layouts.measured() : layout();
}

Nanoseconds TimelineView::Private::total() const
{
    // A preview may be longer; growing the range during a drag would move the lanes under the cursor, so
    // it does not count.
    const Side side = layouts.measured() ? document.side() : Side::Predicted;
    if (side == Side::Predicted)
        return layout().makespan();
    const Nanoseconds measured = layouts.measured()->makespan();
    return side == Side::Measured ? measured : std::max(layouts.outlines()->makespan(), measured);
}

std::optional<LaneBlock> TimelineView::Private::findShown(const Block& block, int* device) const
{
    const TimelineLayout& from = shown();
    const std::optional<TimelineLayout::Place> place = from.find(block);
    if (!place)
        return std::nullopt;
    if (device)
        *device = place->device;
    return from.lanes()[place->device].blocks()[place->index];
}

// ---- What is shown --------------------------------------------------------------------------------

bool TimelineView::Private::showsWhole() const
{
    const auto all = static_cast<double>(total());
    return all == 0 || view.m_axis == clamped(fitted(view.m_axis, 0, all, margin), all, margin);
}

void TimelineView::Private::reload()
{
    const bool whole = showsWhole();
    layouts.setPresent(document.layout());
    refreshHeaders();
    transferLanes.forget();
    wantMembers();
    slack.setPrediction(document.sharedPrediction());
    reason.reset();
    arriving = false;
    setPlan(std::nullopt);
    planner.forget();
    if (gesture && gesture->dependsOnDesign())
        gesture.reset();
    std::erase_if(group, [this](const Block& block) { return !layout().find(block); });
    updateScrollBars();
    // Whoever looks at the whole schedule wants to go on doing so; whoever has zoomed in wants to stay there.
    if (whole)
        view.showAll();
    else
        setAxis(view.m_axis, true);
    updateOverlay();
    view.updateGeometry();
    view.viewport()->update();
}

void TimelineView::Private::refreshHeaders()
{
    const Document::Overlay* trace = document.overlay();
    headers =
        laneHeaders(document.design(), document.prediction(), trace ? &trace->comparison : nullptr, document.side());
}

void TimelineView::Private::setAxis(TimeAxis axis, bool keepFramed)
{
    axis.left = plotLeft();
    axis.width = std::max(1, view.viewport()->width() - plotLeft());
    axis = clamped(axis, static_cast<double>(std::max<Nanoseconds>(1, total())), margin);
    if (!keepFramed)
        framed = false;
    if (axis == view.m_axis)
        return;
    view.m_axis = axis;
    updateScrollBars();
    updateOverlay();
    view.viewport()->update(plotLeft(), 0, axis.width, view.viewport()->height()); // the headers stay
    const auto [start, end] = view.timeRange();
    Q_EMIT view.viewRangeChanged(start, end);
}

void TimelineView::Private::updateScrollBars()
{
    arrangeLanes();
    QScrollBar& vertical = *view.verticalScrollBar();
    const int page = std::max(0, view.viewport()->height() - TimelinePainter::rulerHeight);
    vertical.setPageStep(page);
    vertical.setSingleStep(places.pitch() / 2);
    vertical.setRange(0, std::max(0, strip.total() - page));

    // Zoomed in deeply, the schedule is wider than an int counts pixels; then a step is several pixels.
    const TimeAxis& axis = view.m_axis;
    const double pixels = static_cast<double>(total()) / axis.nsPerPixel + 2 * margin;
    const double perStep = std::max(1.0, pixels / 1e8);
    QScrollBar& horizontal = *view.horizontalScrollBar();
    const QSignalBlocker blocker(horizontal);
    horizontal.setPageStep(static_cast<int>(axis.width / perStep));
    horizontal.setSingleStep(std::max(1, static_cast<int>(40 / perStep)));
    // A pixel beyond the width comes from rounding, not from being zoomed in.
    horizontal.setRange(0, std::max(0, static_cast<int>((pixels - axis.width - 1) / perStep)));
    horizontal.setValue(static_cast<int>(std::lround((axis.start / axis.nsPerPixel + margin) / perStep)));
}

void TimelineView::scrollContentsBy(int dx, int)
{
    if (dx != 0) {
        const double pixels = static_cast<double>(d->total()) / m_axis.nsPerPixel + 2 * Private::margin;
        TimeAxis axis = m_axis;
        axis.start = (horizontalScrollBar()->value() * std::max(1.0, pixels / 1e8) - Private::margin) * axis.nsPerPixel;
        d->setAxis(axis);
    }
    d->updateOverlay();
    viewport()->update();
}

void TimelineView::resizeEvent(QResizeEvent* event)
{
    QAbstractScrollArea::resizeEvent(event);
    d->overlay->setGeometry(viewport()->rect());
    const int before = m_axis.width;
    const int width = std::max(1, viewport()->width() - plotLeft());
    const auto total = static_cast<double>(std::max<Nanoseconds>(1, d->total()));
    const bool whole = m_axis == clamped(fitted(m_axis, 0, total, Private::margin), total, Private::margin);
    // The same stretch of time stays in view; the whole schedule exactly, or rounding would ask for a scroll bar.
    TimeAxis axis = m_axis;
    axis.nsPerPixel *= static_cast<double>(before) / width;
    if (whole) {
        axis.width = width;
        axis = fitted(axis, 0, total, Private::margin);
    }
    d->updateScrollBars();
    d->setAxis(axis, true);
    Q_EMIT lanesChanged(); // they share what height there is
    d->updateOverlay();
}

// ---- The shared axis ------------------------------------------------------------------------------

std::pair<Nanoseconds, Nanoseconds> TimelineView::timeRange() const
{
    return {static_cast<Nanoseconds>(std::floor(std::max(0.0, m_axis.start))),
            static_cast<Nanoseconds>(std::ceil(std::max(0.0, m_axis.end())))};
}

std::pair<Nanoseconds, Nanoseconds> TimelineView::visibleRange() const
{
    const auto inside = [this](double time) { return std::clamp<Nanoseconds>(std::llround(time), 0, d->total()); };
    return {inside(m_axis.start), inside(m_axis.end())};
}

void TimelineView::setAxis(const TimeAxis& axis)
{
    d->setAxis(axis);
}

void TimelineView::showRange(Nanoseconds start, Nanoseconds end)
{
    d->setAxis(fitted(m_axis, static_cast<double>(start), static_cast<double>(end)));
}

void TimelineView::showAll()
{
    d->setAxis(fitted(m_axis, 0, static_cast<double>(std::max<Nanoseconds>(1, d->total())), Private::margin));
}

void TimelineView::frameSelection()
{
    const std::optional<LaneBlock> block =
        d->document.selection() ? d->findShown(*d->document.selection(), nullptr) : std::nullopt;
    if (!block || d->framed) {
        showAll();
        return;
    }
    // Wide enough around it that its neighbours and dependencies can be read.
    const double start = static_cast<double>(block->start), end = static_cast<double>(block->end);
    const double around = std::max(1.0, end - start) * 8;
    d->setAxis(fitted(m_axis, start - around, end + around));
    ensureVisible(*d->document.selection());
    d->framed = true;
}

void TimelineView::zoomBy(double factor, double anchorX)
{
    d->setAxis(zoomed(m_axis, factor,
                      std::clamp(anchorX, static_cast<double>(plotLeft()), static_cast<double>(m_axis.right()))));
}

void TimelineView::ensureVisible(const Block& block)
{
    int device = -1;
    const std::optional<LaneBlock> found = d->findShown(block, &device);
    if (!found)
        return;
    const double start = m_axis.xOf(static_cast<double>(found->start));
    const double end = m_axis.xOf(static_cast<double>(found->end));
    constexpr double space = 40;
    if (start < m_axis.left + space)
        d->setAxis(panned(m_axis, start - m_axis.left - space));
    else if (end > m_axis.right() - space)
        d->setAxis(panned(m_axis, std::min(end - m_axis.right() + space, start - m_axis.left - space)));
    d->ensureLaneVisible(device);
}

// ---- Questions ------------------------------------------------------------------------------------

const Prediction* TimelineView::preview() const
{
    return d->plan && d->plan->legal ? d->plan->prediction.get() : nullptr;
}

const Design& TimelineView::previewDesign() const
{
    const bool known = preview() && !d->plan->live && d->plan->edit.design;
    return known ? *d->plan->edit.design : d->document.design();
}

bool TimelineView::isPreviewing() const
{
    return d->plan.has_value();
}

void TimelineView::setLargeFrom(double milliseconds)
{
    d->planner.setLargeFrom(milliseconds);
}

void TimelineView::showReason(Reason reason)
{
    d->reason = std::move(reason);
    d->chosen = Private::Chosen::Idle;
    d->updateOverlay();
}

bool TimelineView::showsSlack() const
{
    return d->showSlack;
}

bool TimelineView::showsCriticalPath() const
{
    return d->showCritical;
}

const TimelineView::Reason* TimelineView::reason() const
{
    return d->reason ? &*d->reason : nullptr;
}

QSize TimelineView::sizeHint() const
{
    return {plotLeft() + 800, naturalHeight()};
}

QRect TimelineView::rectOfBlock(const Block& block) const
{
    int device = -1;
    const std::optional<LaneBlock> found = d->findShown(block, &device);
    return found ? blockRect(*found, m_axis, d->places.blocks(device), d->scale()).toAlignedRect() : QRect();
}

QRect TimelineView::rectOfLane(int device) const
{
    return d->places.lane(device);
}

std::optional<Block> TimelineView::blockAt(QPoint position) const
{
    const int lane = d->places.at(position.y());
    const TimelineLayout& layout = d->shown();
    if (lane < 0 || static_cast<std::size_t>(lane) >= layout.lanes().size() || position.x() < m_axis.left
        || position.x() >= m_axis.right() || d->places.transfersAt(position) >= 0 || d->places.kernelsAt(position) >= 0)
        return std::nullopt;
    const Lane& blocks = layout.lanes()[lane];
    // The middle of the pixel; blocks narrower than one are found by the pixel's whole extent.
    if (const auto index = blocks.at(m_axis.timeAt(position.x() + 0.5)))
        return blocks.blocks()[*index].block;
    const std::size_t next = blocks.firstEndingAfter(m_axis.timeAt(position.x()));
    if (next < blocks.blocks().size()
        && static_cast<double>(blocks.blocks()[next].start) < m_axis.timeAt(position.x() + 1))
        return blocks.blocks()[next].block;
    return std::nullopt;
}

std::optional<TimelineView::Private::Idle> TimelineView::Private::idleAt(QPoint position) const
{
    const int lane = places.at(position.y());
    if (lane < 0 || !plotRect().contains(position))
        return std::nullopt;
    const Lane& filled = shown().lanes()[lane];
    const std::vector<LaneBlock>& blocks = filled.blocks();
    const std::size_t next = filled.firstEndingAfter(view.m_axis.timeAt(position.x() + 0.5));
    const Nanoseconds start = next > 0 ? blocks[next - 1].end : 0;
    const Nanoseconds end = next < blocks.size() ? blocks[next].start : shown().makespan();
    return end > start ? std::optional(Idle{lane, start, end}) : std::nullopt;
}

int TimelineView::laneCount() const
{
    return d->lanes();
}

std::vector<Block> TimelineView::visibleBlocks(int device) const
{
    std::vector<Block> result;
    if (device < 0 || device >= d->lanes())
        return result;
    const Lane& lane = d->shown().lanes()[device];
    std::size_t i = lane.firstEndingAfter(m_axis.start);
    while (i < lane.blocks().size() && static_cast<double>(lane.blocks()[i].start) < m_axis.end()) {
        result.push_back(lane.blocks()[i].block);
        const double nextPixel = static_cast<double>(lane.blocks()[i].start) + m_axis.nsPerPixel;
        i = std::max(i + 1, lane.firstStartingFrom(nextPixel, i + 1));
    }
    return result;
}

QString TimelineView::nameOfLane(int device) const
{
    return laneDescription(d->document.design(), device);
}

QString TimelineView::nameOfBlock(const Block& block) const
{
    int device = -1;
    const std::optional<LaneBlock> found = d->findShown(block, &device);
    if (!found)
        return {};
    const LaneBlock* const measured = d->layouts.measured() ? d->layouts.measured()->blockOf(block) : nullptr;
    const LaneBlock* const predicted = d->showsMeasured() ? d->layout().blockOf(block) : &*found;
    return blockName(d->document.design(), predicted ? *predicted : *found, device, predicted ? measured : nullptr,
                     d->shownSide());
}

Document& TimelineView::document() const
{
    return d->document;
}

QString TimelineView::describe(const Block& block) const
{
    const std::optional<TimelineLayout::Place> place = d->layout().find(block);
    if (!place)
        return {};
    BlockFacts facts;
    facts.device = place->device;
    facts.predicted = *d->layout().blockOf(block);
    if (!d->slack.isEmpty() && facts.predicted.task != none)
        facts.slack = d->slack.slackOf(facts.predicted.task);
    if (d->layouts.measured())
        facts.measured = d->layouts.measured()->blockOf(block);
    facts.side = d->shownSide();
    return blockToolTip(d->document.design(), facts);
}

} // namespace pipewright

#include "moc_timelineview.cpp"
