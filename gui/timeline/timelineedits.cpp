// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelineedits.h"

#include "core/schedule/edits.h"
#include "core/schedule/warmup.h"
#include "gui/document/namededits.h"
#include "gui/timeline/blockselection.h"
#include "gui/timeline/dropplan.h"
#include "gui/timeline/gesture.h"
#include "gui/timeline/lanes.h"
#include "gui/timeline/memberlanes.h"
#include "gui/timeline/refusalnote.h"
#include "gui/timeline/shownschedule.h"
#include "gui/timeline/timelineview.h"
#include "gui/timeline/transferlanes.h"

#include <algorithm>

namespace pipewright {

TimelineEdits::TimelineEdits(TimelineView& view, Sources sources)
    : m_view(view), m(sources), m_refusal(new RefusalNote(sources.document, view.viewport()))
{
}

bool TimelineEdits::apply(const EditRequest& request)
{
    const Diagnostics faults = m.document.apply(request);
    refuse(faults, request);
    return !hasErrors(faults);
}

void TimelineEdits::refuse(const Diagnostics& diagnostics, const EditRequest& request, std::optional<QPoint> at)
{
    QString hint;
    const QString what = explain(diagnostics, &hint);
    if (what.isEmpty())
        return;
    const QRect selected = m.document.selection() ? m_view.rectOfBlock(*m.document.selection()) : QRect();
    const bool remedied = m_refusal->offer(request, what, at.value_or(selected.center()));
    Q_EMIT m_view.editRefused(remedied || hint.isEmpty() ? what : QStringLiteral("%1: %2").arg(what, hint));
}

bool TimelineEdits::hideRefusal()
{
    const bool was = m_refusal->isVisible();
    m_refusal->hide();
    return was;
}

// ---- One block ------------------------------------------------------------------------------------

void TimelineEdits::togglePin()
{
    const std::optional<Block> selected = m.document.selection();
    const LaneBlock* block = selected ? m.shown.present().blockOf(*selected) : nullptr;
    if (!block || m.hand.held())
        return;
    const std::vector<Pin>& pins = m.document.design().schedule.pins;
    const bool isPinned = std::any_of(pins.begin(), pins.end(), [&](const Pin& pin) { return pin.block == *selected; });
    if (!isPinned && block->runsFrom() == 0) {
        Q_EMIT m_view.editRefused(tr("%1 starts at 0: a pin would say nothing").arg(blockText(*selected)));
        return;
    }
    apply(PinBlock{*selected, isPinned ? 0 : block->runsFrom()});
}

void TimelineEdits::moveBy(int places)
{
    const std::optional<Block> selected = m.document.selection();
    const Design& design = m.document.design();
    const Position position = selected ? find(design.schedule, *selected) : Position{};
    if (position.device < 0 || m.hand.held() || moveGroup(places))
        return;
    // `index` means "before the block at index", so moving behind the next block takes one more.
    const int last = static_cast<int>(design.schedule.order[position.device].size());
    const int index = std::clamp(places < 0 ? position.index + places : position.index + places + 1, 0, last);
    apply(blockMove(design, *selected, index));
    m_view.ensureVisible(*selected);
}

void TimelineEdits::rippleBy(int places)
{
    const std::optional<Block> selected = m.document.selection();
    if (!selected || m.hand.held() || find(m.document.design().schedule, *selected).device < 0)
        return;
    m.document.applyLater({RippleBlock{*selected, places}});
    m_view.ensureVisible(*selected);
}

void TimelineEdits::moveStageBy(int devices)
{
    const std::optional<Block> selected = m.document.selection();
    const Schedule& schedule = m.document.design().schedule;
    const Position position = selected ? find(schedule, *selected) : Position{};
    const int device = position.device + devices;
    if (position.device < 0 || m.hand.held() || device < 0 || device >= schedule.devices())
        return;
    apply(MoveStage{selected->stage, device, selected->replica});
    m_view.ensureVisible(*selected);
}

void TimelineEdits::changeWarmUp(int forwards)
{
    const std::optional<Block> selected = m.document.selection();
    const Schedule& schedule = m.document.design().schedule;
    const int device = selected ? placeOf(schedule, m.shown.present(), *selected).device : -1;
    if (device < 0 || m.hand.held()) {
        Q_EMIT m_view.editRefused(tr("Select a block of the device whose warm-up is to change"));
        return;
    }
    reorder(warmUpChange(m.document.design(), device, warmUp(schedule.order[device]) + forwards));
}

// ---- Several blocks -------------------------------------------------------------------------------

void TimelineEdits::unplace()
{
    const std::vector<Block> blocks = m.selection.blocks();
    if (blocks.empty() || m.hand.held() || find(m.document.design().schedule, blocks.front()).device < 0)
        return;
    apply(UnplaceBlocks{blocks});
}

void TimelineEdits::split()
{
    exchangeHalves(true);
}

void TimelineEdits::merge()
{
    exchangeHalves(false);
}

void TimelineEdits::exchangeHalves(bool split)
{
    const std::optional<Block> held = m.document.selection();
    if (!held)
        return;
    const std::vector<Block> blocks = m.selection.blocks();
    if (!apply(split ? EditRequest(SplitBackwards{blocks}) : EditRequest(MergeBackwards{blocks})))
        return;
    const Op op = split ? Op::I : Op::B;
    const bool isPart = isBackward(held->op);
    if (const Block now{op, held->stage, held->microbatch, held->replica}; isPart && m.shown.present().find(now))
        m.document.select(now);
}

void TimelineEdits::exchangeTwo()
{
    const std::vector<Block> blocks = m.selection.blocks();
    if (m.hand.held())
        return;
    if (blocks.size() == 2)
        exchange(blocks[0], blocks[1]);
    else
        Q_EMIT m_view.editRefused(tr("Select two blocks of one device to exchange them"));
}

void TimelineEdits::exchange(const Block& first, const Block& second)
{
    const Schedule& schedule = m.document.design().schedule;
    const Position one = placeOf(schedule, m.shown.present(), first);
    const Position other = placeOf(schedule, m.shown.present(), second);
    if (one.device < 0 || one.device != other.device) {
        Q_EMIT m_view.editRefused(tr("Select two blocks of one device to exchange them"));
        return;
    }
    reorder(blockExchange(m.document.design(), one.device, one.index, other.index));
}

bool TimelineEdits::moveGroup(int places)
{
    const std::optional<Block> held = m.document.selection();
    if (!held || !m.selection.isInGroup(*held))
        return false;
    const Schedule& schedule = m.document.design().schedule;
    const Position place = placeOf(schedule, m.shown.present(), *held);
    std::vector<std::uint32_t> moved;
    for (const Block& block : m.selection.movingWith(*held))
        if (const Position with = placeOf(schedule, m.shown.present(), block);
            with.device == place.device && with.device >= 0)
            moved.push_back(static_cast<std::uint32_t>(with.index));
    if (moved.size() < 2)
        return false;
    std::sort(moved.begin(), moved.end());
    reorder(blocksMove(m.document.design(), place.device, moved, places));
    return true;
}

void TimelineEdits::reorder(const ReorderDevice& order)
{
    const std::optional<Block> selected = m.document.selection();
    apply(order);
    if (selected)
        m_view.ensureVisible(*selected);
}

// ---- Transfers ------------------------------------------------------------------------------------

std::optional<std::pair<int, Transfer>> TimelineEdits::transferToMove()
{
    auto selected = m.selection.transfer();
    if (selected && !(m.hand.left && m.hand.left->dependsOnDesign()))
        return selected;
    Q_EMIT m_view.editRefused(tr("Select a transfer, or a block that sends one"));
    return std::nullopt;
}

void TimelineEdits::moveTransferBy(int places)
{
    const auto selected = transferToMove();
    if (!selected)
        return;
    const auto [device, transfer] = *selected;
    if (transfer.isWithCopies())
        return moveGatherBy(device, transfer, places);
    std::vector<IssuedTransfer> list = m.transfers.of(device);
    std::erase_if(list, [](const IssuedTransfer& issued) { return issued.transfer.isWithCopies(); });
    const auto at = std::find_if(list.begin(), list.end(),
                                 [&](const IssuedTransfer& issued) { return issued.transfer == selected->second; });
    if (at == list.end())
        return;
    const int from = static_cast<int>(at - list.begin());
    const int to = std::clamp(from + places, 0, static_cast<int>(list.size()) - 1);
    if (to == from) {
        Q_EMIT m_view.editRefused(places < 0 ? tr("It is the first transfer of its device already")
                                             : tr("It is the last transfer of its device already"));
        return;
    }
    if (!m.lanes.strip().showsTransfers(device)) // show the order that is about to change
        m.lanes.change([device = selected->first](LaneStrip& strip) { strip.setTransfers(device, true); });
    if (apply(MoveTransfer{device, from, to}))
        m_view.selectTransfer(device, transfer);
}

void TimelineEdits::moveGatherBy(int device, const Transfer& gather, int places)
{
    if (!gather.isGatherForReader()) {
        Q_EMIT m_view.editRefused(gather.destination == Transfer::sums
                                      ? tr("Gradients are summed behind the block that completes them: move %1")
                                            .arg(blockText(gather.producer))
                                      : tr("Updated parameters are gathered behind the update"));
        return;
    }
    m.lanes.change([device](LaneStrip& strip) { strip.setTransfers(device, true); });
    if (apply(MoveGather{gather.producer, std::nullopt, places}))
        m_view.selectTransfer(device, gather);
}

void TimelineEdits::moveCollectivePast(bool later)
{
    const auto selected = transferToMove();
    if (!selected)
        return;
    const auto [device, transfer] = *selected;
    const std::optional<Transfer> collective = m.members.collectiveBeside(device, transfer, later);
    if (!collective) {
        Q_EMIT m_view.editRefused(
            m.members.membersOf(device) == 0 ? tr("%1 is a single device: collectives are of a group's members")
                                                   .arg(deviceLabel(m.document.design(), device))
            : m_view.memberForecast().members() ? tr("No collective of the group's members stands on that side of it")
                                                : tr("Unfold the lane into its members first"));
        return;
    }
    m.document.applyLater({MoveCollective{*collective, {transfer}, later}});
}

void TimelineEdits::freeTransfer()
{
    const auto selected = m.selection.transfer();
    if (!selected || !m.transfers.isStated(selected->second)) {
        Q_EMIT m_view.editRefused(
            selected && selected->second.isWithCopies()
                ? tr("%1 already stands where the rule puts it").arg(m.transfers.name(selected->second))
            : selected ? tr("%1 already stands where its data puts it").arg(m.transfers.name(selected->second))
                       : tr("Select a transfer, or a block that sends one"));
        return;
    }
    apply(FreeTransfer{selected->second});
}

} // namespace pipewright
