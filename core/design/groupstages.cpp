// SPDX-License-Identifier: GPL-3.0-or-later
// Plans each stage (equal ones once), takes the times of its parts from the plan's charges, and intersects what the
// members of neighbouring stages hold of the tensor between them. O(instructions · members), and for each boundary
// O(members of one stage · members of the next).
#include "core/design/groupstages.h"

#include "core/design/groupcosts.h"
#include "core/design/stagecosts.h"
#include "core/design/stageplans.h"
#include "core/schedule/weightplan.h"
#include "core/sharding/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

namespace {

Nanoseconds nanoseconds(double seconds)
{
    return static_cast<Nanoseconds>(std::llround(seconds * 1e9));
}

PassParts inNanoseconds(const sharding::PartSeconds& seconds)
{
    PassParts parts;
    for (const std::vector<double>& part : seconds.parts) {
        std::vector<Nanoseconds>& times = parts.parts.emplace_back();
        for (const double member : part)
            times.push_back(nanoseconds(member));
    }
    for (const double collective : seconds.collectives)
        parts.collectives.push_back(nanoseconds(collective));
    parts.kinds = seconds.kinds;
    return parts;
}

/// One after the other: the first's last part and the second's first are one.
PassParts behind(const PassParts& first, const PassParts& second)
{
    PassParts both = first;
    for (std::size_t m = 0; m < both.parts.back().size(); ++m)
        both.parts.back()[m] += second.parts.front()[m];
    both.parts.insert(both.parts.end(), second.parts.begin() + 1, second.parts.end());
    both.collectives.insert(both.collectives.end(), second.collectives.begin(), second.collectives.end());
    both.kinds.insert(both.kinds.end(), second.kinds.begin(), second.kinds.end());
    return both;
}

PassParts onePart(Nanoseconds time, int members)
{
    return {{std::vector<Nanoseconds>(static_cast<std::size_t>(members), time)}, {}, {}};
}

/// A group of one, so that every stage has a plan.
DeviceSpec alone(const DeviceSpec& device)
{
    Cluster cluster;
    cluster.name = device.name;
    cluster.devices.push_back(device);
    cluster.devices.back().memory = 0; // what fits is not asked here
    return asOneDevice(std::move(cluster));
}

/// What a member has of a tensor: [first, first + length) of every dimension.
struct Held {
    std::vector<std::int64_t> first, length;
};

std::vector<Held> heldBy(const sharding::Theory& theory, const sharding::Property& property)
{
    const sharding::Shape& shape = theory.graph().node(property.tensor).shape;
    std::vector<Held> held(static_cast<std::size_t>(theory.machine().devices()),
                           {std::vector<std::int64_t>(shape.size(), 0), shape});
    if (property.relation.kind != sharding::RelationKind::Gather)
        return held;
    const auto dim = static_cast<std::size_t>(property.relation.dim);
    std::int64_t first = 0;
    const std::vector<std::int64_t> lengths = shardLengths(theory, property.tensor, property.relation);
    for (std::size_t m = 0; m < held.size(); ++m) {
        held[m].first[dim] = first;
        held[m].length[dim] = lengths[m];
        first += lengths[m];
    }
    return held;
}

/// The piece that `from` has of what `to` wants; no elements: none.
BoundaryPiece pieceBetween(int from, const Held& has, int to, const Held& wants, int bytesPerElement)
{
    BoundaryPiece piece{from, to, bytesPerElement, {}, {}};
    for (std::size_t d = 0; d < has.first.size(); ++d) {
        const std::int64_t first = std::max(has.first[d], wants.first[d]);
        const std::int64_t end = std::min(has.first[d] + has.length[d], wants.first[d] + wants.length[d]);
        piece.first.push_back(first);
        piece.length.push_back(std::max<std::int64_t>(0, end - first));
        piece.bytes *= piece.length.back();
    }
    return piece;
}

const sharding::ShardingInstruction& handOver(const sharding::SharedStage& stage)
{
    return stage.plan.program.instructions.back();
}

const sharding::ShardingInstruction& receivedLoad(const sharding::SharedStage& stage)
{
    const auto& instructions = stage.plan.program.instructions;
    return *std::find_if(instructions.begin(), instructions.end(), [&](const sharding::ShardingInstruction& one) {
        return !one.computes() && one.action == sharding::Action::Load
               && stage.graph.node(one.tensor).leaf == sharding::Leaf::Received;
    });
}

/// What is whole on every member is taken from one: of the sender, by turns. Its gradient goes to the first member,
/// since the gradient of a whole tensor is a sum over the members, of which the first may have all.
void fillBoundary(const sharding::SharedStage& sender, const sharding::SharedStage& receiver, GroupStage& stage)
{
    const sharding::Theory senders(sender.graph, sender.machine, sender.plan.ratios);
    const sharding::Theory receivers(receiver.graph, receiver.machine, receiver.plan.ratios);
    const sharding::Property has = handOver(sender).before.front(), wants = receivedLoad(receiver).after;
    const std::vector<Held> there = heldBy(senders, has), here = heldBy(receivers, wants);
    const int bytes = sender.graph.bytesPerElement;
    const bool fromWhole = has.relation.kind != sharding::RelationKind::Gather,
               toWhole = wants.relation.kind != sharding::RelationKind::Gather;
    const int from = static_cast<int>(there.size()), to = static_cast<int>(here.size());
    for (int f = 0; f < from; ++f)
        for (int t = 0; t < to; ++t) {
            if (!fromWhole || f == t % from)
                if (BoundaryPiece piece = pieceBetween(f, there[f], t, here[t], bytes); piece.bytes > 0)
                    stage.output.push_back(std::move(piece));
            if ((!toWhole || t == f % to) && (!fromWhole || f == 0))
                if (BoundaryPiece piece = pieceBetween(t, here[t], f, there[f], bytes); piece.bytes > 0)
                    stage.gradients.push_back(std::move(piece));
        }
}

} // namespace

int GroupStages::members() const
{
    return std::accumulate(membersOfDevice.begin(), membersOfDevice.end(), 0);
}

int GroupStages::firstOf(int device) const
{
    return std::accumulate(membersOfDevice.begin(), membersOfDevice.begin() + device, 0);
}

bool hasGroups(const Design& design)
{
    const std::vector<int>& placed = design.schedule.deviceOfStage;
    return std::any_of(placed.begin(), placed.end(), [&](int device) {
        return device >= 0 && device < static_cast<int>(design.cluster.devices.size())
               && design.cluster.devices[static_cast<std::size_t>(device)].group != nullptr;
    });
}

Diagnostics whyNoMembers(const Design& design)
{
    Diagnostics why;
    const auto refuse = [&why](bool found, const char* where, const char* what, const char* hint) {
        if (found)
            why.push_back({Severity::Error, where, what, hint});
    };
    if (!design.workload) {
        refuse(true, "workload", "a group's members share the layers of a stage, and the design has no model",
               "make the design from a model");
        return why;
    }
    const Schedule& schedule = design.schedule;
    const auto lacksRate = [](const DeviceSpec& device) { return !(device.peakFlops > 0); };
    for (const DeviceSpec& device : design.cluster.devices)
        if (device.group && std::any_of(device.group->devices.begin(), device.group->devices.end(), lacksRate)) {
            refuse(true, "cluster.devices", "a member of a group has no rate, so its share is not known",
                   "set peak_flops and efficiency");
            break;
        }
    refuse(hasUpdates(schedule), "schedule", "groups do not run schedules that update amid the step",
           "use a synchronous family, such as 1f1b or zb-h1");
    refuse(schedule.replicas() > 1, "schedule.placement", "groups do not run schedules with replicas",
           "use a family without replicas");
    refuse(schedule.sequencePieces > 1, "schedule.sequence_pieces", "groups do not run pieces of sequences",
           "use a family with whole sequences");
    refuse(std::find(schedule.recompute.begin(), schedule.recompute.end(), Recompute::Selective)
               != schedule.recompute.end(),
           "schedule.recompute", "groups make all of a stage's activations again, or none",
           "use full or none: --recompute full");
    refuse(std::find(schedule.offload.begin(), schedule.offload.end(), true) != schedule.offload.end(),
           "schedule.offload", "groups do not offload", "let every stage keep what it made: --offload none");
    refuse(!schedule.overlaps.empty(), "schedule.overlaps", "groups do not run overlapped pairs",
           "take the pairs apart");
    refuse(!schedule.transferOrder.empty(), "schedule.transfer_order",
           "the stated order is of devices, and groups send member by member", "remove \"transfer_order\"");
    refuse(!design.dataflow.skips.empty(), "dataflow.skips", "groups do not carry skip connections",
           "leave them out, or use a cluster without groups");
    refuse(!design.dataflow.shared.empty(), "dataflow.shared",
           "groups do not sum the gradients of a parameter that two stages share",
           "give the model a head of its own: \"tied_head\": false");
    refuse(design.costs.hasHostGaps(), "costs.host_gaps", "host gaps are of devices, and groups run member by member",
           "leave the gaps out");
    refuse(!design.costs.link.bus.empty()
               || std::any_of(design.costs.linkOfPair.begin(), design.costs.linkOfPair.end(),
                              [](const auto& link) { return !link.second.bus.empty(); }),
           "costs.link.bus", "groups do not share a bus", "give the links wires of their own");
    return why;
}

GroupStages groupStages(const Design& design)
{
    if (Diagnostics why = whyNoMembers(design); !why.empty())
        throw Error(std::move(why));
    GroupStages groups;
    for (int device = 0; device < design.schedule.devices(); ++device) {
        const DeviceSpec& spec = design.cluster.devices.at(static_cast<std::size_t>(device));
        groups.membersOfDevice.push_back(spec.group ? static_cast<int>(spec.group->devices.size()) : 1);
        groups.linkInside.push_back(spec.group ? linkCosts(spec.group->link) : LinkCosts{});
    }
    Costs whole;
    applyBytes(*design.workload, design.layersPerStage, design.schedule.recompute, whole);
    sharding::SharedStages known;
    int first = 0;
    for (int s = 0; s < design.schedule.stages(); ++s) {
        const int device = design.schedule.deviceOfStage[static_cast<std::size_t>(s)];
        const DeviceSpec& spec = design.cluster.devices[static_cast<std::size_t>(device)];
        const int count = design.layersPerStage.at(static_cast<std::size_t>(s));
        groups.plans.push_back(
            known.plan(*design.workload, first, count, spec.group ? spec : alone(spec), planOfStage(design, s)));
        first += count;
    }
    for (std::size_t s = 0; s < groups.plans.size(); ++s) {
        const int device = design.schedule.deviceOfStage[s];
        const int members = groups.membersOfDevice[static_cast<std::size_t>(device)];
        const StageCosts& costs = design.costs.stages[s];
        const sharding::SharedStage& shared = groups.plans[s];
        GroupStage& stage = groups.stages.emplace_back();
        for (const Op op : allOps)
            stage.passes[indexOf(op)] = onePart(costs.*timeField(op), members);
        if (members > 1) {
            const sharding::MemberPasses passes = memberPasses(shared.plan.program, shared.graph);
            const auto times = [&](const sharding::MemberPass& pass) {
                return inNanoseconds(partSeconds(pass, shared.plan.program, shared.machine, shared.plan.ratios));
            };
            stage.passes[indexOf(Op::F)] = stage.passes[indexOf(Op::R)] = times(passes.forward);
            stage.passes[indexOf(Op::I)] = times(passes.inputGrad);
            stage.passes[indexOf(Op::W)] = times(passes.weightGrad);
            stage.passes[indexOf(Op::B)] = behind(stage.passes[indexOf(Op::I)], stage.passes[indexOf(Op::W)]);
        }
        stage.members = members > 1 ? memberCosts(shared, whole.stages[s]) : std::vector<StageCosts>{costs};
        if (s + 1 < groups.plans.size())
            fillBoundary(shared, groups.plans[s + 1], stage);
    }
    return groups;
}

} // namespace pipewright
