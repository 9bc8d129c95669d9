// SPDX-License-Identifier: GPL-3.0-or-later
// Applies an edit request: calls the function of its kind, then checks the result against the stated order of
// transfers, which edits of blocks do not check.
#include "core/predict/editrequest.h"

#include "core/design/groupstages.h"
#include "core/design/redesign.h"
#include "core/design/stageplans.h"
#include "core/predict/completion.h"
#include "core/program/collectiveorder.h"
#include "core/program/compile.h"
#include "core/program/gatheredits.h"
#include "core/program/pairtimes.h"
#include "core/program/transferedits.h"
#include "core/schedule/edits.h"
#include "core/schedule/replicas.h"
#include "core/schedule/ripple.h"
#include "core/schedule/statedgather.h"

#include <map>

namespace pipewright {
namespace {

/// Only edits that move blocks can contradict a stated order of transfers.
enum class Check { None, TransferOrder };

EditedDesign withSchedule(const std::shared_ptr<const Design>& design, EditResult result, Check check)
{
    EditedDesign edited{design, std::move(result.diagnostics), {}};
    if (hasErrors(edited.diagnostics) || result.schedule == design->schedule)
        return edited;
    auto changed = std::make_shared<Design>(*design);
    changed->schedule = std::move(result.schedule);
    if (check == Check::TransferOrder && !changed->schedule.transferOrder.empty()) {
        try {
            (void)compile(changed->schedule, changed->costs, changed->dataflow, {.allowMissing = true});
        } catch (const Error& error) {
            edited.diagnostics = error.diagnostics();
            return edited;
        }
    }
    edited.design = std::move(changed);
    return edited;
}

EditResult moveStage(const Design& design, const Prediction* present, const MoveStage& request)
{
    std::map<Block, Nanoseconds> starts;
    if (present) {
        const Program& program = present->program;
        for (std::size_t i = 0; i < program.tasks.size(); ++i)
            if (program.tasks[i].kind == TaskKind::Compute)
                starts.emplace(program.tasks[i].block(), present->timeline.start[i]);
    }
    const auto startOf = [&starts](const Block& block) {
        const auto it = starts.find(block);
        return it == starts.end() ? Nanoseconds{0} : it->second;
    };
    return pipewright::moveStage(design.schedule, request.stage, request.device, startOf, design.dataflow.skips,
                                 request.replica);
}

struct Apply {
    const std::shared_ptr<const Design>& design;
    const Prediction* present;
    const Schedule& schedule = design->schedule;
    const std::vector<SkipConnection>& skips = design->dataflow.skips;

    EditedDesign moved(EditResult result) const
    {
        return withSchedule(design, std::move(result), Check::TransferOrder);
    }
    EditedDesign stated(EditResult result) const { return withSchedule(design, std::move(result), Check::None); }

    EditedDesign operator()(const ReorderDevice& request) const
    {
        return moved(reorderDevice(schedule, request.device, request.positions, skips));
    }
    EditedDesign operator()(const RippleBlock& request) const
    {
        return moved(rippleBlock(schedule, request.block, request.places, skips));
    }
    EditedDesign operator()(const PastePattern& request) const
    {
        return moved(pastePattern(schedule, request.pattern, request.devices, skips));
    }
    EditedDesign operator()(const MoveStage& request) const { return moved(moveStage(*design, present, request)); }
    EditedDesign operator()(const PlaceBlock& request) const
    {
        return moved(placeBlock(schedule, request.block, request.index, skips));
    }
    EditedDesign operator()(const UnplaceBlocks& request) const
    {
        return stated(unplaceBlocks(schedule, request.blocks));
    }
    EditedDesign operator()(const PinBlock& request) const
    {
        return stated(pinBlock(schedule, request.block, request.earliestStart));
    }
    EditedDesign operator()(const SplitBackwards& request) const
    {
        return moved(splitBackwards(schedule, request.blocks, skips));
    }
    EditedDesign operator()(const MergeBackwards& request) const
    {
        return moved(mergeBackwards(schedule, request.blocks, skips));
    }
    EditedDesign operator()(const CompleteSchedule&) const
    {
        Completion completion = completeSchedule(*design);
        EditedDesign edited = moved({std::move(completion.schedule), std::move(completion.diagnostics)});
        edited.style = std::move(completion.style);
        return edited;
    }
    EditedDesign operator()(const MoveTransfer& request) const
    {
        if (!present)
            return {design, {}, {}};
        return stated(moveTransfer(*design, present->program, request.device, request.from, request.to));
    }
    EditedDesign operator()(const MoveCollective& request) const
    {
        return stated(moveCollective(*design, request.collective, request.passed, request.later));
    }
    EditedDesign operator()(const MoveGather& request) const
    {
        return stated(request.before ? placeGather(*design, request.reader, *request.before)
                                     : moveGatherBy(*design, request.reader, request.places));
    }
    EditedDesign operator()(const FreeTransfer& request) const
    {
        if (request.transfer.destination == Transfer::gathers) {
            EditResult result{schedule, {}};
            freeGather(result.schedule, request.transfer.producer);
            return stated(std::move(result));
        }
        return stated({withoutStatedOrder(schedule, request.transfer), {}});
    }
    EditedDesign operator()(const OrderParts& request) const
    {
        EditResult result{schedule, {}};
        statePartOrder(result.schedule, request.pair, request.sequence);
        result.diagnostics = checkParts(result.schedule, design->costs);
        return stated(std::move(result));
    }
    EditedDesign operator()(const AllowFirstStageSplit&) const
    {
        EditResult result{schedule, {}};
        result.schedule.firstStageMaySplit = true;
        return stated(std::move(result));
    }
    EditedDesign operator()(const SetStagePlan& request) const
    {
        try {
            auto changed = std::make_shared<const Design>(withPlan(*design, request.stage, request.plan));
            return {*changed == *design ? design : changed, {}, {}};
        } catch (const Error& error) {
            return {design, error.diagnostics(), {}};
        }
    }
    EditedDesign operator()(const SetZero& request) const
    {
        try {
            auto changed = std::make_shared<const Design>(withZero(*design, request.zero));
            Diagnostics why = checkReplicas(changed->schedule);
            if (changed->schedule.sharesOptimizer() && hasGroups(*changed))
                for (Diagnostic& each : whyNoMembers(*changed))
                    if (each.where == "schedule.zero")
                        why.push_back(std::move(each));
            if (hasErrors(why))
                return {design, std::move(why), {}};
            return {*changed == *design ? design : changed, {}, {}};
        } catch (const Error& error) {
            return {design, error.diagnostics(), {}};
        }
    }
    EditedDesign operator()(const ReplaceDesign& request) const
    {
        return {*request.design == *design ? design : request.design, {}, {}};
    }
};

} // namespace

EditedDesign apply(const EditRequest& request, const std::shared_ptr<const Design>& design, const Prediction* present)
{
    return std::visit(Apply{design, present}, request);
}

EditedDesign apply(std::span<const EditRequest> requests, const std::shared_ptr<const Design>& design,
                   const Prediction* present)
{
    EditedDesign all{design, {}, {}};
    std::optional<Prediction> between;
    for (const EditRequest& request : requests) {
        if (all.design != design) {
            try {
                between.emplace(predictPlaced(*all.design));
            } catch (const Error&) {
                between.reset(); // as in a document whose blocks cannot run
            }
        }
        EditedDesign next = apply(request, all.design, all.design == design ? present : between ? &*between : nullptr);
        all.diagnostics.insert(all.diagnostics.end(), next.diagnostics.begin(), next.diagnostics.end());
        if (hasErrors(next.diagnostics))
            return {design, std::move(all.diagnostics), {}};
        all.design = std::move(next.design);
        all.style = std::move(next.style);
    }
    return all;
}

std::optional<EditRequest> remedyFor(const EditRequest& refused, const std::shared_ptr<const Design>& design,
                                     const Prediction* present)
{
    if (design->schedule.firstStageMaySplit)
        return std::nullopt;
    // It changes no time, so the present prediction is also valid for the design in between.
    const EditRequest remedy = AllowFirstStageSplit{};
    const EditedDesign allowed = apply(remedy, design, present);
    const EditedDesign edited = apply(refused, allowed.design, present);
    return hasErrors(edited.diagnostics) ? std::nullopt : std::optional(remedy);
}

} // namespace pipewright
