// SPDX-License-Identifier: GPL-3.0-or-later
// Several blocks at once in TimelineView: chosen by a rubber band, by what they have in common, or one by one;
// and what is done with them together. The Document knows the one block that was chosen last; the others are
// the view's own and go when another block is selected elsewhere.
#include "gui/document/namededits.h"
#include "gui/timeline/timelineviewprivate.h"

#include <QAction>

#include <algorithm>

namespace pipewright {

std::vector<Block> TimelineView::selectedBlocks() const
{
    std::vector<Block> result;
    if (d->group.empty()) {
        if (d->document.selection())
            result.push_back(*d->document.selection());
        return result;
    }
    for (const Lane& lane : d->shown().lanes())
        for (const LaneBlock& block : lane.blocks())
            if (d->group.contains(block.block))
                result.push_back(block.block);
    return result;
}

void TimelineView::selectBlocks(const std::vector<Block>& blocks)
{
    d->group.clear();
    d->group.insert(blocks.begin(), blocks.end());
    const std::optional<Block> now = d->document.selection();
    if (!now || !d->group.contains(*now))
        d->document.select(blocks.empty() ? std::nullopt : std::optional(blocks.front()));
    if (d->group.size() < 2)
        d->group.clear();
    else
        Q_EMIT hovered(tr("%1 blocks selected").arg(d->group.size()));
    viewport()->update();
    d->updateOverlay();
}

void TimelineView::selectAll()
{
    std::vector<Block> blocks;
    for (const Lane& lane : d->layout().lanes())
        for (const LaneBlock& item : lane.blocks())
            if (isPass(item.block.op))
                blocks.push_back(item.block);
    if (!d->held())
        selectBlocks(blocks);
}

void TimelineView::selectAlike(Alike alike)
{
    const std::optional<Block> model = d->document.selection();
    if (!model || d->held())
        return;
    std::vector<Block> blocks;
    for (const Lane& lane : d->shown().lanes())
        for (const LaneBlock& item : lane.blocks()) {
            const Block& block = item.block;
            const bool same = alike == Alike::Microbatch ? block.microbatch == model->microbatch && isPass(block.op)
                              : alike == Alike::Stage    ? block.stage == model->stage && isPass(block.op)
                                                         : block.op == model->op && block.stage == model->stage;
            if (same && block.replica == model->replica)
                blocks.push_back(block);
        }
    selectBlocks(blocks);
}

void TimelineView::selectNextTransfer()
{
    const std::optional<Block> selected = d->document.selection();
    const int home = selected ? deviceOfBlock(d->document.design().schedule, d->layout(), *selected) : -1;
    std::vector<std::pair<int, Transfer>> choices;
    for (const IssuedTransfer& issued : home >= 0 ? d->transferLanes.of(home) : std::vector<IssuedTransfer>())
        if (issued.sends && issued.transfer.producer == *selected)
            for (const int device : {home, issued.transfer.destination})
                if (device >= 0) // not the host's memory
                    choices.emplace_back(device, issued.transfer);
    if (choices.empty()) {
        Q_EMIT editRefused(tr("Select a block that sends something"));
        return;
    }
    const auto now = d->chosenTransfer ? std::find(choices.begin(), choices.end(), *d->chosenTransfer) : choices.end();
    const auto [device, transfer] = now == choices.end() || now + 1 == choices.end() ? choices.front() : *(now + 1);
    if (!d->strip.showsTransfers(device)) {
        d->strip.setTransfers(device, true);
        d->lanesChanged();
    }
    selectTransfer(device, transfer);
}

void TimelineView::Private::toggleInGroup(const Block& block)
{
    std::vector<Block> blocks = view.selectedBlocks();
    const auto found = std::find(blocks.begin(), blocks.end(), block);
    if (found != blocks.end())
        blocks.erase(found);
    else
        blocks.insert(blocks.begin(), block);
    view.selectBlocks(blocks);
}

void TimelineView::Private::extendTo(const Block& block)
{
    const std::optional<TimelineLayout::Place> to = shown().find(block);
    const std::optional<TimelineLayout::Place> from =
        document.selection() ? shown().find(*document.selection()) : std::nullopt;
    if (!from || !to || from->device != to->device) {
        document.select(block);
        return;
    }
    const std::vector<LaneBlock>& blocks = shown().lanes()[to->device].blocks();
    std::vector<Block> chosen;
    for (std::size_t i = std::min(from->index, to->index); i <= std::max(from->index, to->index); ++i)
        chosen.push_back(blocks[i].block);
    view.selectBlocks(chosen);
}

// ---- What is done with them -----------------------------------------------------------------------

void TimelineView::exchangeSelection()
{
    const std::vector<Block> blocks = selectedBlocks();
    if (d->held())
        return;
    if (blocks.size() == 2)
        exchange(blocks[0], blocks[1]);
    else
        Q_EMIT editRefused(tr("Select two blocks of one device to exchange them"));
}

void TimelineView::exchange(const Block& first, const Block& second)
{
    const Schedule& schedule = d->document.design().schedule;
    const Position one = placeOf(schedule, d->layout(), first), other = placeOf(schedule, d->layout(), second);
    if (one.device < 0 || one.device != other.device) {
        Q_EMIT editRefused(tr("Select two blocks of one device to exchange them"));
        return;
    }
    d->commitOrder(blockExchange(d->document.design(), one.device, one.index, other.index));
}

void TimelineView::Private::commitOrder(const ReorderDevice& order)
{
    const std::optional<Block> selected = document.selection();
    applyOrRefuse(order);
    if (selected)
        view.ensureVisible(*selected);
}

QAction* TimelineView::action(const QString& name) const
{
    for (QAction* each : actions())
        if (each->objectName() == name)
            return each;
    return nullptr;
}

} // namespace pipewright
