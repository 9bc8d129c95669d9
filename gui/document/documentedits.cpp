// SPDX-License-Identifier: GPL-3.0-or-later
// The edits of a Document as values: each makes the design that it would give, and says what forbids it.
#include "gui/document/document.h"

#include "core/predict/completion.h"
#include "core/program/compile.h"
#include "core/program/transferorder.h"
#include "core/schedule/ripple.h"

#include <map>

namespace pipewright {
namespace {

/// A legal result's schedule in the design's place; else the design as it is, with what forbids the edit.
Document::Edit editOf(const Design& design, EditResult result, const QString& text)
{
    Document::Edit edit{design, std::move(result.diagnostics), text};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return edit;
}

// Blocks know nothing of the order that is stated of transfers; compiling says whether the two agree.
Document::Edit checked(Document::Edit edit, const Design& present)
{
    if (hasErrors(edit.diagnostics) || edit.design.schedule.transferOrder.empty())
        return edit;
    try {
        (void)compile(edit.design.schedule, edit.design.costs, edit.design.dataflow, {.allowMissing = true});
    } catch (const Error& error) {
        edit.diagnostics = error.diagnostics();
        edit.design = present;
    }
    return edit;
}

} // namespace

Document::Edit Document::tryMoveBlock(const Block& block, int index) const
{
    return checked(
        editOf(m_design, pipewright::moveBlock(m_design.schedule, block, index, m_design.dataflow.skips),
               tr("Move %1 on %2").arg(blockText(block), deviceLabel(m_design, find(m_design.schedule, block).device))),
        m_design);
}

Document::Edit Document::tryReorder(int device, std::span<const std::uint32_t> positions, const QString& text) const
{
    return reordered(m_design, device, positions, text);
}

Document::Edit Document::tryMoveStage(int stage, int device, int replica) const
{
    return withStageMoved(m_design, prediction(), stage, device, replica);
}

Document::Edit Document::tryPlaceBlock(const Block& block, int index) const
{
    return withBlockPlaced(m_design, block, index);
}

Document::Edit Document::reordered(const Design& design, int device, std::span<const std::uint32_t> positions,
                                   const QString& text)
{
    EditResult result = reorderDevice(design.schedule, device, positions, design.dataflow.skips);
    Edit edit{design, std::move(result.diagnostics), text};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return checked(std::move(edit), design);
}

Document::Edit Document::withStageMoved(const Design& design, const Prediction* prediction, int stage, int device,
                                        int replica)
{
    std::map<Block, Nanoseconds> starts;
    if (prediction) {
        const Program& program = prediction->program;
        for (std::size_t i = 0; i < program.tasks.size(); ++i) {
            if (program.tasks[i].kind == TaskKind::Compute)
                starts.emplace(program.tasks[i].block(), prediction->timeline.start[i]);
        }
    }
    const auto startOf = [&starts](const Block& block) {
        const auto it = starts.find(block);
        return it == starts.end() ? Nanoseconds{0} : it->second;
    };
    EditResult result = pipewright::moveStage(design.schedule, stage, device, startOf, design.dataflow.skips, replica);
    Edit edit{design, std::move(result.diagnostics),
              tr("Move stage %1 to %2").arg(stage).arg(deviceLabel(design, device))};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return checked(std::move(edit), design);
}

Document::Edit Document::withBlockPlaced(const Design& design, const Block& block, int index)
{
    EditResult result = pipewright::placeBlock(design.schedule, block, index, design.dataflow.skips);
    Edit edit{design, std::move(result.diagnostics), tr("Place %1").arg(blockText(block))};
    if (!hasErrors(edit.diagnostics)) {
        edit.design.schedule = std::move(result.schedule);
        edit.text =
            tr("Place %1 on %2").arg(blockText(block), deviceLabel(design, find(edit.design.schedule, block).device));
    }
    return checked(std::move(edit), design);
}

Document::Edit Document::tryUnplace(const std::vector<Block>& blocks) const
{
    return editOf(m_design, unplaceBlocks(m_design.schedule, blocks),
                  blocks.size() == 1 ? tr("Return %1 to the tray").arg(blockText(blocks.front()))
                                     : tr("Return %n blocks to the tray", nullptr, static_cast<int>(blocks.size())));
}

Document::Edit Document::tryPin(const Block& block, Nanoseconds earliestStart) const
{
    return editOf(m_design, pinBlock(m_design.schedule, block, earliestStart),
                  earliestStart == 0 ? tr("Unpin %1").arg(blockText(block)) : tr("Pin %1").arg(blockText(block)));
}

Document::Edit Document::trySplitBackwards(const std::vector<Block>& blocks) const
{
    return checked(editOf(m_design, splitBackwards(m_design.schedule, blocks, m_design.dataflow.skips),
                          blocks.size() == 1 ? tr("Split %1 into its halves").arg(blockText(blocks.front()))
                                             : tr("Split backwards into their halves")),
                   m_design);
}

Document::Edit Document::tryMergeBackwards(const std::vector<Block>& blocks) const
{
    return checked(editOf(m_design, mergeBackwards(m_design.schedule, blocks, m_design.dataflow.skips),
                          blocks.size() == 1 ? tr("Merge %1 with its other half").arg(blockText(blocks.front()))
                                             : tr("Merge the halves of backwards")),
                   m_design);
}

Document::Edit Document::tryRipple(const Block& block, int places) const
{
    return rippled(m_design, block, places);
}

Document::Edit Document::rippled(const Design& design, const Block& block, int places)
{
    return checked(editOf(design, rippleBlock(design.schedule, block, places, design.dataflow.skips),
                          tr("Move %1 and the rest of microbatch %2").arg(blockText(block)).arg(block.microbatch)),
                   design);
}

Document::Edit Document::tryComplete() const
{
    Completion completion = completeSchedule(m_design);
    Edit edit{m_design, std::move(completion.diagnostics),
              completion.style.empty() ? tr("Complete the rest")
                                       : tr("Complete the rest as %1").arg(QString::fromStdString(completion.style))};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(completion.schedule);
    return checked(std::move(edit), m_design);
}

Document::Edit Document::tryMoveTransfer(int device, int from, int to) const
{
    if (!prediction())
        return {m_design, diagnostics(), {}};
    return withTransferMoved(m_design, *prediction(), device, from, to);
}

Document::Edit Document::withTransferMoved(const Design& design, const Prediction& present, int device, int from,
                                           int to)
{
    const std::vector<IssuedTransfer> list = transfersOf(present.program, device);
    const bool known = from >= 0 && static_cast<std::size_t>(from) < list.size();
    EditResult result = moveTransfer(design, present.program, device, from, to);
    Edit edit{
        design, std::move(result.diagnostics),
        known ? tr("Move the transfer of %1 to %2")
                    .arg(blockText(list[from].transfer.producer), deviceLabel(design, list[from].transfer.destination))
              : QString()};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return edit;
}

Document::Edit Document::tryForgetTransfer(const Transfer& transfer) const
{
    Edit edit{m_design,
              {},
              tr("Let %1 to %2 go where its data puts it")
                  .arg(blockText(transfer.producer), deviceLabel(m_design, transfer.destination))};
    edit.design.schedule = withoutStatedOrder(m_design.schedule, transfer);
    return edit;
}

} // namespace pipewright
