// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/exportedtext.h"

#include "core/base/takeout.h"
#include "core/design/designbuilder.h"
#include "core/design/groupstages.h"
#include "core/exchange/pytorchaction.h"
#include "core/model/parallelism.h"
#include "core/schedule/validate.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

void requireKnownBlocks(const Schedule& schedule)
{
    for (std::size_t device = 0; device < schedule.order.size(); ++device)
        for (const Block& block : schedule.order[device])
            if (block.op != Op::U && !exportedType(block.op)) // updates are dropped below
                throw Error(fmt::format("device {} ({})", device, toString(block)),
                            "the other tools have no recompute in their schedules: a stage's module recomputes by "
                            "itself, inside its backward",
                            "export the design with --recompute none, and set the same in the other tool "
                            "(torch.utils.checkpoint, jax.checkpoint, --recompute-granularity of Megatron)");
}

/// Removes the update blocks and the weight versions that blocks read.
void dropUpdates(Schedule& schedule, Diagnostics& diagnostics)
{
    std::vector<Block> dropped;
    for (std::vector<Block>& lane : schedule.order)
        std::erase_if(lane, [&](const Block& block) { return block.op == Op::U && (dropped.push_back(block), true); });
    if (dropped.empty())
        return;
    if (!schedule.dataParallelDevices.empty())
        throw Error(
            "schedule.in_turn",
            "a stage whose microbatches several devices work on in turn has no place in the other tools' schedules",
            "export a schedule with one device for each stage (for workers: --layout pipeline or single)");
    schedule.weightPolicy = {};
    diagnostics.push_back(
        {Severity::Warning, "schedule.order",
         fmt::format("{} update blocks ({}{}) and the weight versions between them are left out", dropped.size(),
                     toString(dropped.front()), dropped.size() > 1 ? ", …" : ""),
         "the other tool updates every stage once, after the step's last microbatch: the order is the same, "
         "the training is not"});
}

} // namespace

bool isNamedInExports(const Design& design)
{
    Design rest = design;
    takeOut(rest.name, rest.workload, rest.layersPerStage, rest.buildingBlock, rest.plans);
    takeOut(rest.cluster, rest.costs); // times and memory are those of the other tool
    takeOut(rest.dataflow.skips, rest.dataflow.shared);
    Schedule& schedule = rest.schedule;
    takeOut(schedule.microbatches, schedule.deviceOfStage, schedule.replicaPlacements, schedule.weightPolicy,
            schedule.zero);
    schedule.sequencePieces = Schedule{}.sequencePieces;
    takeOut(schedule.recompute);                             // R blocks are refused, others warned of
    takeOut(schedule.offload, schedule.dataParallelDevices); // refused where they mean anything
    takeOut(schedule.family, schedule.backward, schedule.firstStageMaySplit, schedule.order, schedule.overlaps,
            schedule.pins, schedule.partOrders, schedule.transferOrder, schedule.gathers);
    return rest == Design{};
}

Design exportable(const Design& design, Diagnostics& diagnostics)
{
    requireKnownBlocks(design.schedule);
    if (std::find(design.schedule.offload.begin(), design.schedule.offload.end(), true)
        != design.schedule.offload.end())
        throw Error("schedule.offload", "the other tools have no copies to the host's memory in their schedules",
                    "export the design with --offload none, and let the other tool's modules offload by themselves "
                    "(torch.autograd.graph.save_on_cpu)");
    Diagnostics faults = validate(design.schedule, design.dataflow.skips);
    if (hasErrors(faults))
        throw Error(std::move(faults));
    Design result = design;
    dropUpdates(result.schedule, diagnostics);
    if (!isNamedInExports(design))
        throw Error("schedule", "the design states what no export of a schedule knows",
                    "export a schedule of a family, such as 1f1b");
    if (!design.schedule.pins.empty())
        diagnostics.push_back({Severity::Warning, "schedule.pins", "pinned start times are left out",
                               "the other tool starts every block as early as it can"});
    result.schedule.pins.clear();
    const auto saysNothing = [&](bool of, const char* where, const std::string& what) {
        if (of)
            diagnostics.push_back({Severity::Warning, where, "the file says nothing of " + what,
                                   "set the same where the other tool's job is configured"});
    };
    saysNothing(design.schedule.zero.level > 0, "schedule.zero",
                fmt::format("the states that copies share out (ZeRO {})", design.schedule.zero.level));
    saysNothing(!design.schedule.recompute.empty(), "schedule.recompute",
                fmt::format("activations that the backward recomputes ({})", textOf(design.schedule.recompute)));
    saysNothing(hasGroups(design), "cluster.devices", "groups of devices and how they share their stages");
    saysNothing(!design.schedule.partOrders.empty(), "schedule.part_orders", "the order of overlapped blocks' parts");
    if (design.workload && !(design.workload->shape.parallel == Parallelism{}))
        saysNothing(true, "model.parallel", textOf(design.workload->shape.parallel));
    if (!design.dataflow.skips.empty())
        diagnostics.push_back({Severity::Warning, "dataflow.skips", "skip connections are left out",
                               "the other tool hands values only from one stage to the next"});
    if (!design.dataflow.shared.empty() && !hasStandInModel(design))
        diagnostics.push_back({Severity::Warning, "dataflow.shared",
                               "the reduction of gradients of shared parameters is left out",
                               "add it to the training loop, after the step's last microbatch"});
    if (design.schedule.sequencePieces > 1)
        diagnostics.push_back({Severity::Warning, "schedule.sequence_pieces",
                               fmt::format("the {} pieces of a sequence are written as microbatches of their own",
                                           design.schedule.sequencePieces),
                               "the other tool's stages must keep the keys and values of earlier pieces"});
    return result;
}

void leaveOutTransferOrder(const Design& design, Diagnostics& diagnostics)
{
    if (!design.schedule.transferOrder.empty())
        diagnostics.push_back({Severity::Note, "schedule.transfer_order", "the stated order of transfers is left out",
                               "the other tool orders them by itself; pytorch-comms-csv has the order"});
}

void requireOneReplica(const Design& design, std::string_view tool)
{
    if (design.schedule.replicas() > 1)
        throw Error(
            "schedule.replica_placements",
            fmt::format("{} has no word for the {} replicas of this schedule", tool, design.schedule.replicas()),
            "export a schedule of one replica, or pytorch-csv for the order alone");
}

} // namespace pipewright
