// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/blockselection.h"

#include "gui/document/document.h"
#include "gui/timeline/dropplan.h"
#include "gui/timeline/shownschedule.h"
#include "gui/timeline/transferlanes.h"

#include <algorithm>

namespace pipewright {

BlockSelection::BlockSelection(Document& document, const ShownSchedule& shown, const TransferLanes& transfers)
    : m_document(document), m_shown(shown), m_transfers(transfers)
{
}

// ---- Blocks ---------------------------------------------------------------------------------------

std::vector<Block> BlockSelection::blocks() const
{
    std::vector<Block> result;
    if (m_group.empty()) {
        if (m_document.selection())
            result.push_back(*m_document.selection());
        return result;
    }
    for (const Lane& lane : m_shown.layout().lanes())
        for (const LaneBlock& block : lane.blocks())
            if (m_group.contains(block.block))
                result.push_back(block.block);
    return result;
}

std::vector<Block> BlockSelection::movingWith(const Block& block) const
{
    if (!m_group.contains(block))
        return {};
    return {m_group.begin(), m_group.end()};
}

void BlockSelection::clear()
{
    m_document.select(std::nullopt);
}

void BlockSelection::select(const std::vector<Block>& blocks)
{
    m_group.clear();
    m_group.insert(blocks.begin(), blocks.end());
    const std::optional<Block> now = m_document.selection();
    if (!now || !m_group.contains(*now))
        m_document.select(blocks.empty() ? std::nullopt : std::optional(blocks.front()));
    if (m_group.size() < 2)
        m_group.clear();
    else
        Q_EMIT counted(static_cast<int>(m_group.size()));
    Q_EMIT changed();
}

void BlockSelection::selectAll()
{
    std::vector<Block> blocks;
    for (const Lane& lane : m_shown.present().lanes())
        for (const LaneBlock& item : lane.blocks())
            if (isPass(item.block.op))
                blocks.push_back(item.block);
    select(blocks);
}

void BlockSelection::selectWhere(const std::function<bool(const Block& block)>& wanted)
{
    std::vector<Block> blocks;
    for (const Lane& lane : m_shown.layout().lanes())
        for (const LaneBlock& item : lane.blocks())
            if (wanted(item.block))
                blocks.push_back(item.block);
    select(blocks);
}

void BlockSelection::toggle(const Block& block)
{
    std::vector<Block> now = blocks();
    const auto found = std::find(now.begin(), now.end(), block);
    if (found != now.end())
        now.erase(found);
    else
        now.insert(now.begin(), block);
    select(now);
}

void BlockSelection::extendTo(const Block& block)
{
    const TimelineLayout& layout = m_shown.layout();
    const std::optional<TimelineLayout::Place> to = layout.find(block);
    const std::optional<TimelineLayout::Place> from =
        m_document.selection() ? layout.find(*m_document.selection()) : std::nullopt;
    if (!from || !to || from->device != to->device) {
        m_document.select(block);
        return;
    }
    const std::vector<LaneBlock>& onDevice = layout.lanes()[to->device].blocks();
    std::vector<Block> between;
    for (std::size_t i = std::min(from->index, to->index); i <= std::max(from->index, to->index); ++i)
        between.push_back(onDevice[i].block);
    select(between);
}

std::optional<Block> BlockSelection::neighbour(int direction, double time) const
{
    const TimelineLayout& layout = m_shown.layout();
    const std::optional<TimelineLayout::Place> place =
        m_document.selection() ? layout.find(*m_document.selection()) : std::nullopt;
    if (place) {
        const std::vector<LaneBlock>& blocks = layout.lanes()[place->device].blocks();
        const auto index = static_cast<std::ptrdiff_t>(place->index) + direction;
        if (index >= 0 && index < static_cast<std::ptrdiff_t>(blocks.size()))
            return blocks[index].block;
        return std::nullopt;
    }
    for (const Lane& lane : layout.lanes()) {
        const std::size_t first = lane.firstEndingAfter(std::max(0.0, time));
        if (first < lane.blocks().size())
            return lane.blocks()[first].block;
    }
    return std::nullopt;
}

void BlockSelection::alsoSelect(const Block& next, bool keepLast)
{
    const std::optional<Block> last = m_document.selection();
    std::vector<Block> now = blocks();
    if (last && !keepLast)
        std::erase(now, *last);
    std::erase(now, next);
    now.insert(now.begin(), next);
    m_group = {now.begin(), now.end()}; // which the new selection is of, and so they stay
    m_document.select(next);
    select(now);
}

// ---- Transfers ------------------------------------------------------------------------------------

std::optional<BlockSelection::OnDevice> BlockSelection::transfer() const
{
    const std::optional<Block> selected = m_document.selection();
    if (!selected)
        return std::nullopt;
    if (m_transfer && m_transfer->second.producer == *selected)
        return m_transfer;
    // Else the first one that the selected block gives rise to.
    const int home = deviceOfBlock(m_document.design().schedule, m_shown.present(), *selected);
    for (const IssuedTransfer& issued : m_transfers.of(home))
        if (issued.sends && issued.transfer.producer == *selected && !issued.transfer.isHostCopy())
            return OnDevice(home, issued.transfer);
    return std::nullopt;
}

std::optional<BlockSelection::OnDevice> BlockSelection::nextTransfer() const
{
    const std::optional<Block> selected = m_document.selection();
    const int home = selected ? deviceOfBlock(m_document.design().schedule, m_shown.present(), *selected) : -1;
    std::vector<OnDevice> choices;
    for (const IssuedTransfer& issued : home >= 0 ? m_transfers.of(home) : std::vector<IssuedTransfer>())
        if (issued.sends && issued.transfer.producer == *selected)
            for (const int device : {home, issued.transfer.destination})
                if (device >= 0) // not the host's memory
                    choices.emplace_back(device, issued.transfer);
    if (choices.empty())
        return std::nullopt;
    const auto now = m_transfer ? std::find(choices.begin(), choices.end(), *m_transfer) : choices.end();
    return now == choices.end() || now + 1 == choices.end() ? choices.front() : *(now + 1);
}

void BlockSelection::selectTransfer(int device, const Transfer& transfer)
{
    m_document.select(transfer.producer);
    m_transfer = {device, transfer};
}

// ---- Changes elsewhere ----------------------------------------------------------------------------

void BlockSelection::documentChanged()
{
    const std::optional<Block> selected = m_document.selection();
    if (!selected || !m_group.contains(*selected))
        m_group.clear();
}

void BlockSelection::scheduleChanged()
{
    std::erase_if(m_group, [this](const Block& block) { return !m_shown.present().find(block); });
}

} // namespace pipewright

#include "moc_blockselection.cpp"
