// SPDX-License-Identifier: GPL-3.0-or-later
// Plans each stage (equal ones once), takes the times of its parts from the plan's charges, and intersects the pieces
// of the boundary tensor that the members of neighbouring stages hold. O(instructions · members), and for each boundary
// O(members of one stage · members of the next).
#include "core/design/groupstages.h"

#include "core/base/takeout.h"
#include "core/design/clusterlinks.h"
#include "core/design/groupcosts.h"
#include "core/design/passparts.h"
#include "core/design/stagecosts.h"
#include "core/design/stageplans.h"
#include "core/schedule/replicas.h"
#include "core/schedule/weightplan.h"
#include "core/sharding/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace pipewright {

namespace {

/// Scales the times by the ratio of the design's time of the stage to the plan's: costs may be given or measured.
void scale(PassParts& pass, Nanoseconds planned, Nanoseconds stated)
{
    if (planned == stated || planned <= 0)
        return;
    const auto scaled = [&](Nanoseconds& time) {
        time = std::llround(static_cast<double>(time) * static_cast<double>(stated) / static_cast<double>(planned));
    };
    for (std::vector<Nanoseconds>& part : pass.parts)
        std::for_each(part.begin(), part.end(), scaled);
    std::for_each(pass.collectives.begin(), pass.collectives.end(), scaled);
}

/// The same for bytes, of which the plan may give a member none.
Bytes inProportion(Bytes own, Bytes planned, Bytes stated)
{
    return planned == stated || planned <= 0
               ? own
               : std::llround(static_cast<double>(own) * static_cast<double>(stated) / static_cast<double>(planned));
}

PassParts onePart(Nanoseconds time, int members)
{
    return {{std::vector<Nanoseconds>(members, time)}, {}, {}};
}

/// A group of one, so that every stage has a plan.
DeviceSpec alone(const DeviceSpec& device)
{
    Cluster cluster;
    cluster.name = device.name;
    cluster.devices.push_back(device);
    cluster.devices.back().memory = 0; // memory limits do not matter here
    return asOneDevice(std::move(cluster));
}

/// The part of a tensor that a member holds: [first, first + length) in every dimension.
struct Held {
    std::vector<std::int64_t> first, length;
};

std::vector<Held> heldBy(const sharding::Theory& theory, const sharding::Property& property)
{
    const Shape& shape = theory.graph().node(property.tensor).shape;
    std::vector<Held> held(theory.machine().devices(), {std::vector<std::int64_t>(shape.size(), 0), shape});
    if (property.relation.kind != sharding::RelationKind::Gather)
        return held;
    std::int64_t first = 0;
    const std::vector<std::int64_t> lengths = shardLengths(theory, property.tensor, property.relation);
    for (std::size_t m = 0; m < held.size(); ++m) {
        held[m].first[property.relation.dim] = first;
        held[m].length[property.relation.dim] = lengths[m];
        first += lengths[m];
    }
    return held;
}

/// The intersection of the part that `from` holds and the part that `to` needs; empty without elements.
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

bool isWhole(const sharding::Property& property)
{
    return property.relation.kind != sharding::RelationKind::Gather;
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
               && stage.graph.node(one.tensor).leaf == Leaf::Received;
    });
}

/// The pieces of a tensor that one side holds and the other needs. A tensor that is whole on every member is sent by
/// one of them, in rotation.
std::vector<BoundaryPiece> piecesBetween(const std::vector<Held>& has, bool whole, const std::vector<Held>& wants,
                                         int bytesPerElement)
{
    std::vector<BoundaryPiece> pieces;
    const int from = static_cast<int>(has.size()), to = static_cast<int>(wants.size());
    for (int t = 0; t < to; ++t)
        for (int f = 0; f < from; ++f)
            if (!whole || f == t % from)
                if (BoundaryPiece piece = pieceBetween(f, has[f], t, wants[t], bytesPerElement); piece.bytes > 0)
                    pieces.push_back(std::move(piece));
    return pieces;
}

/// The gradient of a tensor that is whole on every member goes to the first member: it is a sum over members, and the
/// first member may hold all of it.
StageEdge edgeBetween(const GroupStages& groups, int from, int to, bool skip)
{
    const sharding::SharedStage& sender = groups.plans[from];
    const sharding::SharedStage& receiver = groups.plans[to];
    const sharding::Theory senders(sender.graph, sender.machine, sender.plan.ratios);
    const sharding::Theory receivers(receiver.graph, receiver.machine, receiver.plan.ratios);
    const sharding::Property has = handOver(sender).before.front(), wants = receivedLoad(receiver).after;
    std::vector<Held> there = heldBy(senders, has);
    const std::vector<Held> here = heldBy(receivers, wants);
    const int bytes = sender.graph.bytesPerElement;
    const bool fromWhole = isWhole(has), toWhole = isWhole(wants);
    StageEdge edge{from, to, skip, piecesBetween(there, fromWhole, here, bytes), {}};
    if (fromWhole)
        there.resize(1);
    edge.gradients = piecesBetween(here, toWhole, there, bytes);
    return edge;
}

/// How a copy of a stage stores a parameter.
sharding::Property storedAs(const sharding::SharedStage& stage, int tensor)
{
    const auto& instructions = stage.plan.program.instructions;
    return std::find_if(instructions.begin(), instructions.end(),
                        [&](const sharding::ShardingInstruction& one) {
                            return !one.computes() && one.action == sharding::Action::Load && one.tensor == tensor;
                        })
        ->after;
}

class SumMaker {
public:
    SumMaker(const GroupStages& groups, int root, int other, int gradientBytes, bool replaces = false)
        : m_root(groups.plans[root]), m_other(groups.plans[other]),
          m_roots(m_root.graph, m_root.machine, m_root.plan.ratios),
          m_others(m_other.graph, m_other.machine, m_other.plan.ratios),
          m_bytes(gradientBytes), m_sum{root, other, {}, replaces}
    {
    }

    void add(int ofRoot, int ofOther)
    {
        const sharding::Property root = storedAs(m_root, ofRoot), other = storedAs(m_other, ofOther);
        const std::vector<Held> here = heldBy(m_roots, root), there = heldBy(m_others, other);
        SharedSum::Parameter& parameter = m_sum.parameters.emplace_back(SharedSum::Parameter{ofRoot, ofOther, {}, {}});
        if (!m_sum.replaces)
            parameter.toRoot = piecesBetween(there, isWhole(other), here, m_bytes);
        parameter.toOther = piecesBetween(here, isWhole(root), there, m_bytes);
    }

    SharedSum take() { return std::move(m_sum); }

private:
    const sharding::SharedStage &m_root, &m_other;
    sharding::Theory m_roots, m_others;
    int m_bytes;
    SharedSum m_sum;
};

void addSums(const Design& design, GroupStages& groups)
{
    const int bytes = design.workload->state.gradient;
    for (int r = 0; r < design.schedule.replicas(); ++r)
        for (const SharedParameter& shared : design.dataflow.shared) {
            if (!shared.joinsStages())
                continue; // the stage's plan holds it once
            const int root = groups.copyOf(shared.rootStage, r), other = groups.copyOf(shared.otherStage, r);
            SumMaker maker(groups, root, other, bytes);
            maker.add(groups.plans[root].graph.find(embeddingName), groups.plans[other].graph.find(headName));
            groups.sums.push_back(maker.take());
        }
    const auto addOfReplicas = [&](int root, int other, bool replaces) {
        for (int s = 0; s < groups.perReplica; ++s) {
            SumMaker maker(groups, groups.copyOf(s, root), groups.copyOf(s, other), bytes, replaces);
            const TensorGraph& graph = groups.plans[s].graph;
            for (int tensor = 0; tensor < graph.size(); ++tensor)
                if (graph.node(tensor).leaf == Leaf::Parameter && !design.schedule.sharesOptimizer())
                    maker.add(tensor, tensor);
            groups.sums.push_back(maker.take());
        }
    };
    for (const ReplicaPair& pair : replicaPairs(design.schedule.replicas()))
        addOfReplicas(pair.root, pair.other, false);
    for (const ReplicaCopy& copy : replicaCopies(design.schedule.replicas()))
        addOfReplicas(copy.from, copy.to, true);
}

/// Whether a stage's devices in replica 0 and in another replica are equal, so that it is cut in the same way. Names
/// and places of the groups do not matter.
bool areAlike(const Design& design, int stage, int replica)
{
    const auto groupOf = [&](int of) -> std::optional<Cluster> {
        const int device = design.schedule.placement(of).at(stage);
        if (device >= static_cast<int>(design.cluster.devices.size()) || !design.cluster.devices[device].group)
            return std::nullopt;
        Cluster group = *design.cluster.devices[device].group;
        group.name.clear();
        group.gpus.clear();
        return group;
    };
    return groupOf(0) == groupOf(replica);
}

/// The first stage whose replicas are on unlike groups, or -1.
int firstUnlikeStage(const Design& design)
{
    for (int s = 0; s < design.schedule.stages(); ++s)
        for (int r = 1; r < design.schedule.replicas(); ++r)
            if (!areAlike(design, s, r))
                return s;
    return -1;
}

/// The stage's plan; on a different group than the one it was stated for only its strategy is kept.
sharding::StatedPlan planOfCopy(const Design& design, int stage, int replica)
{
    sharding::StatedPlan plan = planOfStage(design, stage);
    if (areAlike(design, stage, replica))
        return plan;
    return {plan.strategy, {}, {}};
}

/// Scales the members' times and bytes of a group's stage, in all replicas, where the design's costs differ from the
/// plan's.
void takeStatedCosts(const Design& design, const StageCosts& whole, std::size_t stage, GroupStages& groups)
{
    const DeviceSpec* const group = groupOfStage(design, static_cast<int>(stage));
    if (group == nullptr)
        return;
    const StageCosts& stated = design.costs.stages[stage];
    StageCosts planned = whole;
    applyGroupCosts(groups.plans[stage], *group, planned);
    for (std::size_t copy = stage; copy < groups.stages.size(); copy += groups.perReplica) {
        GroupStage& own = groups.stages[copy];
        if (own.members.size() == 1)
            continue;
        for (const Op op : allOps)
            if (op != Op::U) // already taken from the design
                scale(own.passes[indexOf(op)], planned.*timeField(op), stated.*timeField(op));
        for (StageCosts& member : own.members)
            for (const auto bytes : bytesOnMembers)
                member.*bytes = inProportion(member.*bytes, planned.*bytes, stated.*bytes);
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

Bytes SharedSum::bytes(bool toRoot, int from, int to) const
{
    Bytes sum = 0;
    for (const Parameter& parameter : parameters)
        for (const BoundaryPiece& piece : toRoot ? parameter.toRoot : parameter.toOther)
            if (piece.from == from && piece.to == to)
                sum += piece.bytes;
    return sum;
}

CopyEdges::CopyEdges(const GroupStages& groups, int copy)
{
    for (const StageEdge& edge : groups.edges) {
        if (edge.to == copy)
            in.push_back(&edge);
        if (edge.from == copy)
            out.push_back(&edge);
    }
}

bool hasGroups(const Design& design)
{
    const auto isGroup = [&](int device) {
        return device >= 0 && device < static_cast<int>(design.cluster.devices.size())
               && design.cluster.devices[device].group != nullptr;
    };
    for (int r = 0; r < design.schedule.replicas(); ++r) {
        const std::vector<int>& placed = design.schedule.placement(r);
        if (std::any_of(placed.begin(), placed.end(), isGroup))
            return true;
    }
    return false;
}

namespace {

/// Why members of a group do not recompute so; empty: they do.
std::string_view whyGroupsDoNotRecompute(Recompute recompute)
{
    switch (recompute.kind) {
    case RecomputeKind::None:
    case RecomputeKind::Block: return {};
    case RecomputeKind::Full: return "a group's members recompute by R blocks, not inside the backward";
    case RecomputeKind::Selective:
    case RecomputeKind::BlockSelective: break;
    }
    return "a group's members keep nothing of attention's core, so there is nothing to recompute selectively";
}

} // namespace

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
    refuse(!schedule.dataParallelDevices.empty() || schedule.shardedStates, "schedule",
           "groups do not hand weights from device to device",
           "use a family of which every device updates its own stages, such as pipedream");
    refuse(hasUpdates(schedule) && schedule.backward == BackwardStyle::Split, "schedule.backward",
           "the weight gradient of a member reads weights, which an update before it replaces", "use full backwards");
    if (const int unlike = schedule.sharesOptimizer() ? firstUnlikeStage(design) : -1; unlike >= 0)
        why.push_back({Severity::Error, "schedule.zero",
                       fmt::format("replicas share the optimizer's state out member by member, and stage {} is on "
                                   "groups that are unlike",
                                   unlike),
                       "give every replica of a stage a group of the same devices and link, or make the design "
                       "without --zero"});
    refuse(schedule.sharesGradientsOfReplicas(), "schedule.zero",
           "replicas of groups share out the optimizer's state alone", "take level 1, or a cluster of single devices");
    refuse(schedule.sequencePieces != design.workload->shape.sequencePieces, "schedule.sequence_pieces",
           "the model's sequences are cut into another number of pieces", "make the design from the model again");
    for (const Recompute recompute : schedule.recompute)
        if (const std::string_view reason = whyGroupsDoNotRecompute(recompute); !reason.empty()) {
            refuse(true, "schedule.recompute", reason.data(), "use block or none: --recompute block");
            break;
        }
    // Behind the reasons with a remedy: what is not known to run is not run.
    Schedule rest = schedule;
    takeOut(rest.microbatches, rest.weightPolicy, rest.deviceOfStage, rest.replicaPlacements, rest.recompute,
            rest.offload, rest.zero);
    takeOut(rest.family, rest.backward, rest.firstStageMaySplit, rest.order, rest.pins, rest.transferOrder);
    takeOut(rest.overlaps, rest.partOrders); // refused below
    takeOut(rest.gathers);                   // of ZeRO 3, which is refused
    rest.sequencePieces = Schedule{}.sequencePieces;
    refuse(why.empty() && !(rest == Schedule{}), "schedule", "it holds what groups do not run",
           "use a family such as 1f1b or pipedream");
    refuse(!schedule.overlaps.empty(), "schedule.overlaps", "groups do not run overlapped pairs",
           "take the pairs apart");
    if (!design.dataflow.skips.empty() && static_cast<int>(design.layersPerStage.size()) == schedule.stages()) {
        Costs whole;
        applyBytes(*design.workload, design.layersPerStage, schedule.memoryChoices(), whole);
        refuse(
            std::any_of(design.dataflow.skips.begin(), design.dataflow.skips.end(),
                        [&](const SkipConnection& skip) { return skip.bytes != whole.stages[skip.fromStage].output; }),
            "dataflow.skips", "in groups a skip connection carries what its stage hands on, and \"bytes\" differ",
            "state the bytes of the stage's output");
    }
    const auto holdsLayers = [](int count) { return count > 0; };
    const std::vector<int>& layers = design.layersPerStage;
    const auto first = std::find_if(layers.begin(), layers.end(), holdsLayers) - layers.begin();
    const auto last = layers.rend() - std::find_if(layers.rbegin(), layers.rend(), holdsLayers) - 1;
    refuse(std::any_of(
               design.dataflow.shared.begin(), design.dataflow.shared.end(),
               [&](const SharedParameter& shared) { return shared.rootStage != first || shared.otherStage != last; }),
           "dataflow.shared", "members share the embedding of the first layers with the head of the last ones",
           "name the stages that hold these, or leave it out");
    refuse(design.costs.communication == Communication::OneStream, "costs.communication",
           "one stream of transfers is of a device, and what a group's members send each other runs beside it",
           "let transfers be \"overlapped\"");
    refuse(design.costs.hasHostGaps(), "costs.host_gaps", "host gaps are of devices, and groups run member by member",
           "leave the gaps out");
    refuse(design.costs.hasBus(), "costs.link.bus", "groups do not share a bus", "give the links wires of their own");
    Costs costs = design.costs;
    takeOut(costs.stages, costs.microbatches, costs.link, costs.nodeLinks, costs.linkOfPair, costs.hostLink,
            costs.reduce);
    takeOut(costs.communication, costs.hostGaps); // of which some are refused above
    costs.overlapFactor = Costs{}.overlapFactor;
    costs.source = Costs{}.source;
    Dataflow dataflow = design.dataflow;
    takeOut(dataflow.skips, dataflow.shared);
    refuse(why.empty() && !(costs == Costs{} && dataflow == Dataflow{}), "costs", "they hold what groups do not run",
           "make the design from a model");
    return why;
}

bool runsMemberByMember(const Design& design)
{
    return hasGroups(design) && whyNoMembers(design).empty();
}

GroupStages groupStages(const Design& design)
{
    if (Diagnostics why = whyNoMembers(design); !why.empty())
        throw Error(std::move(why));
    GroupStages groups;
    for (int device = 0; device < design.schedule.devices(); ++device) {
        const DeviceSpec& spec = design.cluster.devices.at(device);
        groups.membersOfDevice.push_back(spec.group ? static_cast<int>(spec.group->devices.size()) : 1);
        groups.linkInside.push_back(spec.group ? linkCosts(spec.group->link) : LinkCosts{});
    }
    Costs whole;
    applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), whole);
    groups.perReplica = design.schedule.stages();
    groups.sequencePieces = design.schedule.sequencePieces;
    sharding::SharedStages known;
    for (int r = 0; r < design.schedule.replicas(); ++r) {
        int first = 0;
        for (int s = 0; s < groups.perReplica; ++s) {
            const int device = design.schedule.placement(r)[s];
            const DeviceSpec& spec = design.cluster.devices[device];
            const int count = design.layersPerStage.at(s);
            groups.deviceOfCopy.push_back(device);
            groups.plans.push_back(
                known.plan(*design.workload, first, count, spec.group ? spec : alone(spec), planOfCopy(design, s, r)));
            first += count;
        }
    }
    for (int copy = 0; copy < static_cast<int>(groups.plans.size()); ++copy) {
        const int members = groups.membersOf(copy);
        const std::size_t s = copy % groups.perReplica;
        const StageCosts& costs = design.costs.stages[s];
        const sharding::SharedStage& shared = groups.plans[copy];
        GroupStage& stage = groups.stages.emplace_back();
        for (const Op op : allOps)
            stage.passes[indexOf(op)] = onePart(costs.*timeField(op), members);
        if (members > 1) {
            const auto planned = plannedPasses(shared);
            for (const Op op : allOps)
                if (isPass(op))
                    stage.passes[indexOf(op)] = planned[indexOf(op)];
        }
        stage.members = members > 1 ? memberCosts(shared, whole.stages[s]) : std::vector<StageCosts>{costs};
    }
    for (int s = 0; s < groups.perReplica; ++s)
        takeStatedCosts(design, whole.stages[s], s, groups);
    for (int r = 0; r < design.schedule.replicas(); ++r) {
        for (int s = 0; s + 1 < groups.perReplica; ++s)
            groups.edges.push_back(edgeBetween(groups, groups.copyOf(s, r), groups.copyOf(s + 1, r), false));
        for (const SkipConnection& skip : design.dataflow.skips)
            groups.edges.push_back(
                edgeBetween(groups, groups.copyOf(skip.fromStage, r), groups.copyOf(skip.toStage, r), true));
    }
    for (StageEdge& edge : groups.edges) {
        const std::size_t s = edge.from % groups.perReplica;
        for (std::vector<BoundaryPiece>* pieces : {&edge.output, &edge.gradients})
            for (BoundaryPiece& piece : *pieces)
                piece.bytes = inProportion(piece.bytes, whole.stages[s].output, design.costs.stages[s].output);
    }
    addSums(design, groups);
    return groups;
}

} // namespace pipewright
