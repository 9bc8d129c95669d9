// SPDX-License-Identifier: GPL-3.0-or-later
// TimelineView's selection, readings and edits: the functions that its actions and other widgets call.
#include "core/schedule/edits.h"
#include "gui/timeline/dependencies.h"
#include "gui/timeline/timelineparts.h"
#include "gui/timeline/timelineview.h"

#include <QAction>

#include <algorithm>
#include <cmath>

namespace pipewright {

QAction* TimelineView::action(const QString& name) const
{
    for (QAction* each : actions())
        if (each->objectName() == name)
            return each;
    return nullptr;
}

// ---- Selection ------------------------------------------------------------------------------------

std::vector<Block> TimelineView::selectedBlocks() const
{
    return d->selection.blocks();
}

void TimelineView::selectBlocks(const std::vector<Block>& blocks)
{
    d->selection.select(blocks);
}

void TimelineView::selectAll()
{
    if (!d->hand.held())
        d->selection.selectAll();
}

void TimelineView::selectAlike(Alike alike)
{
    const std::optional<Block> model = d->document.selection();
    if (!model || d->hand.held())
        return;
    d->selection.selectWhere([&](const Block& block) {
        const bool same = alike == Alike::Microbatch ? block.microbatch == model->microbatch && isPass(block.op)
                          : alike == Alike::Stage    ? block.stage == model->stage && isPass(block.op)
                                                     : block.op == model->op && block.stage == model->stage;
        return same && block.replica == model->replica;
    });
}

void TimelineView::selectNeighbour(int direction)
{
    const std::optional<Block> next = d->selection.neighbour(direction, axis().start);
    if (!next)
        return;
    d->document.select(next);
    ensureVisible(*next);
}

void TimelineView::selectNeighbourToo(int direction, bool also)
{
    const std::optional<Block> next = d->selection.neighbour(direction, axis().start);
    if (!next || d->hand.held())
        return;
    d->selection.alsoSelect(*next, also);
    ensureVisible(*next);
}

void TimelineView::followDependency(int direction)
{
    const std::optional<Block> selected = d->document.selection();
    const TimelineLayout& layout = d->shown.layout();
    if (!selected || !layout.find(*selected))
        return;
    const Dependencies dependencies = dependenciesOf(d->document.design(), layout, *selected);
    const std::optional<Block> next =
        direction < 0 ? lastInput(dependencies, layout) : firstOutput(dependencies, layout);
    if (!next)
        return;
    d->document.select(next);
    ensureVisible(*next);
}

void TimelineView::explainIdleBefore()
{
    const TimelineLayout& layout = d->shown.layout();
    const std::optional<TimelineLayout::Place> place =
        d->document.selection() ? layout.find(*d->document.selection()) : std::nullopt;
    if (!place)
        return;
    const std::vector<LaneBlock>& blocks = layout.lanes()[place->device].blocks();
    const Nanoseconds start = place->index > 0 ? blocks[place->index - 1].end : 0;
    const Nanoseconds end = blocks[place->index].start;
    if (end > start)
        Q_EMIT gapClicked(place->device, start, end);
    else
        Q_EMIT editRefused(tr("Nothing is idle before this block"));
}

std::optional<Transfer> TimelineView::selectedTransfer(int* device) const
{
    const auto selected = d->selection.transfer();
    if (selected && device)
        *device = selected->first;
    return selected ? std::optional(selected->second) : std::nullopt;
}

void TimelineView::selectTransfer(int device, const Transfer& transfer)
{
    d->selection.selectTransfer(device, transfer);
    if (const QString name = nameOfTransfer(device, transfer); !name.isEmpty())
        Q_EMIT hovered(name);
    d->menus.setChosen(TimelineMenus::Chosen::Transfer);
    viewport()->update();
    Q_EMIT transferSelected();
}

void TimelineView::selectNextTransfer()
{
    const auto next = d->selection.nextTransfer();
    if (!next) {
        Q_EMIT editRefused(tr("Select a block that sends something"));
        return;
    }
    const auto [device, transfer] = *next;
    if (!d->lanes.strip().showsTransfers(device))
        d->lanes.change([device = next->first](LaneStrip& strip) { strip.setTransfers(device, true); });
    selectTransfer(device, transfer);
}

void TimelineView::cancel()
{
    if (const std::unique_ptr<Gesture> ended = std::move(d->hand.left)) {
        ended->cancel();
        return;
    }
    if (d->drop.plan()) {
        d->drop.clear();
        return;
    }
    // Each call ends one thing, the most recent first.
    if (d->edits.hideRefusal())
        return;
    if (d->document.selection()) {
        d->selection.clear();
    } else if (reason() || range()) {
        d->overlay.explain(std::nullopt);
        setRange(std::nullopt);
        d->overlay.update();
    } else {
        d->readings.clearMarks();
        d->overlay.update();
    }
}

// ---- Readings -------------------------------------------------------------------------------------

void TimelineView::toggleMark(Nanoseconds time)
{
    if (d->readings.toggleMark(time, d->map.markReach()))
        d->menus.setChosen(TimelineMenus::Chosen::Ruler);
    d->overlay.update();
}

const std::vector<Nanoseconds>& TimelineView::marks() const
{
    return d->readings.marks();
}

void TimelineView::setRange(std::optional<std::pair<Nanoseconds, Nanoseconds>> range)
{
    if (!d->readings.setRange(range))
        return;
    if (range)
        d->menus.setChosen(TimelineMenus::Chosen::Ruler);
    d->overlay.update();
    Q_EMIT rangeChanged();
}

std::optional<std::pair<Nanoseconds, Nanoseconds>> TimelineView::range() const
{
    return d->readings.range();
}

std::optional<std::pair<Nanoseconds, Nanoseconds>> TimelineView::measurable() const
{
    if (const Reason* idle = reason())
        return {{idle->start, idle->end}};
    std::optional<std::pair<Nanoseconds, Nanoseconds>> all;
    for (const Block& block : selectedBlocks())
        if (const std::optional<LaneBlock> found = d->shown.find(block))
            all = all ? std::pair(std::min(all->first, found->start), std::max(all->second, found->end))
                      : std::pair(found->start, found->end);
    if (all)
        return all;
    if (marks().size() >= 2)
        return {{marks().front(), marks().back()}};
    const std::pair<Nanoseconds, Nanoseconds> visible = visibleRange();
    return range() || visible.first >= visible.second ? std::nullopt : std::optional(visible);
}

void TimelineView::measure()
{
    const auto wanted = measurable();
    setRange(wanted == range() ? std::nullopt : wanted);
}

void TimelineView::measureByNumbers()
{
    if (!range())
        setRange(measurable());
    if (range())
        Q_EMIT rangeWantedByNumbers();
}

TimeReadings TimelineView::readings() const
{
    return d->overlay.readings();
}

void TimelineView::pointAt(std::optional<double> time)
{
    d->overlay.pointAt(time ? std::optional(static_cast<Nanoseconds>(std::llround(*time))) : std::nullopt);
}

QString TimelineView::crosshairText() const
{
    return d->overlay.crosshairText();
}

void TimelineView::showReason(Reason reason)
{
    d->overlay.explain(std::move(reason));
    d->menus.setChosen(TimelineMenus::Chosen::Idle);
    d->overlay.update();
}

const TimelineView::Reason* TimelineView::reason() const
{
    return d->overlay.reason();
}

// ---- Edits ----------------------------------------------------------------------------------------

void TimelineView::exchange(const Block& first, const Block& second)
{
    d->edits.exchange(first, second);
}

void TimelineView::moveSelection(int places)
{
    d->edits.moveBy(places);
}

void TimelineView::rippleSelection(int places)
{
    d->edits.rippleBy(places);
}

} // namespace pipewright
