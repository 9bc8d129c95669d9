// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/namededits.h"

#include "core/design/stageplans.h"
#include "core/program/transferorder.h"
#include "core/schedule/edits.h"
#include "core/schedule/statedgather.h"
#include "core/schedule/warmup.h"
#include "gui/document/document.h"

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

QString tr(const char* text, int n = -1)
{
    return Document::tr(text, nullptr, n);
}

struct Name {
    const Design& before;
    const Prediction* present;
    const EditedDesign& after;

    QString operator()(const ReorderDevice& request) const { return QString::fromStdString(request.name); }
    QString operator()(const RippleBlock& request) const
    {
        return tr("Move %1 and the rest of microbatch %2").arg(blockText(request.block)).arg(request.block.microbatch);
    }
    QString operator()(const PastePattern& request) const
    {
        QStringList devices;
        for (const int device : request.devices)
            if (patternOn(before.schedule, request.pattern, device).changesOrder())
                devices << deviceLabel(before, device);
        const int blocks = static_cast<int>(request.pattern.blocks.size());
        return devices.size() > 3 ? tr("Paste the order of %n blocks on %1 devices", blocks).arg(devices.size())
                                  : tr("Paste the order of %n blocks on %1", blocks).arg(devices.join(tr(", ")));
    }
    QString operator()(const MoveStage& request) const
    {
        return tr("Move stage %1 to %2").arg(request.stage).arg(deviceLabel(before, request.device));
    }
    QString operator()(const PlaceBlock& request) const
    {
        const QString block = blockText(request.block);
        return hasErrors(after.diagnostics)
                   ? tr("Place %1").arg(block)
                   : tr("Place %1 on %2").arg(block, deviceLabel(before, before.schedule.deviceOf(request.block)));
    }
    QString operator()(const UnplaceBlocks& request) const
    {
        return request.blocks.size() == 1 ? tr("Return %1 to the tray").arg(blockText(request.blocks.front()))
                                          : tr("Return %n blocks to the tray", static_cast<int>(request.blocks.size()));
    }
    QString operator()(const PinBlock& request) const
    {
        return (request.earliestStart == 0 ? tr("Unpin %1") : tr("Pin %1")).arg(blockText(request.block));
    }
    QString operator()(const SplitBackwards& request) const
    {
        return request.blocks.size() == 1 ? tr("Split %1 into its halves").arg(blockText(request.blocks.front()))
                                          : tr("Split backwards into their halves");
    }
    QString operator()(const MergeBackwards& request) const
    {
        return request.blocks.size() == 1 ? tr("Merge %1 with its other half").arg(blockText(request.blocks.front()))
                                          : tr("Merge the halves of backwards");
    }
    QString operator()(const CompleteSchedule&) const
    {
        return after.style.empty() ? tr("Complete the rest")
                                   : tr("Complete the rest as %1").arg(QString::fromStdString(after.style));
    }
    QString operator()(const MoveTransfer& request) const
    {
        if (!present)
            return {};
        const std::vector<IssuedTransfer> list = transfersOf(present->program, request.device);
        if (request.from < 0 || request.from >= std::ssize(list))
            return {};
        const Transfer& moved = list[request.from].transfer;
        return tr("Move the transfer of %1 to %2")
            .arg(blockText(moved.producer), deviceLabel(before, moved.destination));
    }
    QString operator()(const MoveCollective& request) const
    {
        return (request.later ? tr("Move %1 behind what its group sends") : tr("Move %1 before what its group sends"))
            .arg(QString::fromStdString(textOf(request.collective)));
    }
    QString operator()(const MoveGather& request) const
    {
        const QString name = QString::fromStdString(gatherName(request.reader));
        const StatedGather* stated = statedGather(after.design->schedule, request.reader);
        if (stated == nullptr)
            return tr("%1 where the rule puts it").arg(name);
        return stated->before ? tr("%1 before %2").arg(name, blockText(*stated->before))
                              : tr("%1 left out: stage %2 is held").arg(name).arg(request.reader.stage);
    }
    QString operator()(const FreeTransfer& request) const
    {
        if (request.transfer.isWithCopies())
            return tr("%1 where the rule puts it").arg(QString::fromStdString(gatherName(request.transfer.producer)));
        return tr("Let %1 to %2 go where its data puts it")
            .arg(blockText(request.transfer.producer), deviceLabel(before, request.transfer.destination));
    }
    QString operator()(const OrderParts& request) const
    {
        return (request.sequence.empty() ? tr("Shortest order of the parts of %1 and %2")
                                         : tr("Order the parts of %1 and %2"))
            .arg(blockText(request.pair.first), blockText(request.pair.second));
    }
    QString operator()(const AllowFirstStageSplit&) const { return tr("Allow the first stage to split"); }
    QString operator()(const SetStagePlan& request) const
    {
        if (request.plan == sharding::StatedPlan{})
            return tr("Find the plan of stage %1 anew").arg(request.stage);
        const sharding::StatedPlan present = planOfStage(before, request.stage);
        std::vector<std::string> had = present.program, has = request.plan.program;
        std::sort(had.begin(), had.end());
        std::sort(has.begin(), has.end());
        if (present.program != request.plan.program && had == has && present.ratios == request.plan.ratios)
            return tr("Order of stage %1's program").arg(request.stage);
        if (present.program != request.plan.program)
            return tr("Plan of stage %1: %2")
                .arg(request.stage)
                .arg(QLatin1String(nameOf(request.plan.strategy).data()));
        QStringList shares;
        for (const double share : request.plan.ratios)
            shares << QString::number(std::lround(share * 100));
        return tr("Shares of stage %1: %2 %").arg(request.stage).arg(shares.join(QStringLiteral(" : ")));
    }
    QString operator()(const SetZero& request) const
    {
        return request.zero.level > 1   ? tr("Share out states: %1").arg(QString::fromStdString(textOf(request.zero)))
               : request.zero.level > 0 ? tr("Share the optimizer state among copies")
                                        : tr("Keep the optimizer state whole in every copy");
    }
    QString operator()(const ReplaceDesign& request) const { return QString::fromStdString(request.name); }
};

} // namespace

ReorderDevice blockMove(const Design& design, const Block& block, int index)
{
    const Position at = find(design.schedule, block);
    if (at.device < 0)
        throw Error(toString(block), "this block is not placed", "drag it from the tray");
    const std::uint32_t moved[] = {static_cast<std::uint32_t>(at.index)};
    return blocksMove(design, at.device, moved, (index > at.index ? index - 1 : index) - at.index);
}

ReorderDevice blocksMove(const Design& design, int device, std::span<const std::uint32_t> moved, int places)
{
    const std::vector<Block>& order = design.schedule.order[device];
    const QString name = moved.size() == 1
                             ? tr("Move %1 on %2").arg(blockText(order[moved[0]]), deviceLabel(design, device))
                             : tr("Move %1 blocks on %2").arg(moved.size()).arg(deviceLabel(design, device));
    return {device, shiftedPositions(order.size(), moved, places), name.toStdString()};
}

ReorderDevice blockExchange(const Design& design, int device, int first, int second)
{
    const std::vector<Block>& order = design.schedule.order[device];
    std::vector<std::uint32_t> positions = presentPositions(order.size());
    std::swap(positions[first], positions[second]);
    const QString name = tr("Exchange %1 and %2 on %3")
                             .arg(blockText(order[first]), blockText(order[second]), deviceLabel(design, device));
    return {device, std::move(positions), name.toStdString()};
}

ReorderDevice warmUpChange(const Design& design, int device, int forwards)
{
    const QString name = tr("Warm-up of %1 on %2").arg(std::max(0, forwards)).arg(deviceLabel(design, device));
    return {device, withWarmUp(design.schedule.order[device], forwards), name.toStdString()};
}

QString editName(const EditRequest& request, const Design& before, const Prediction* present, const EditedDesign& after)
{
    return std::visit(Name{before, present, after}, request);
}

} // namespace pipewright
