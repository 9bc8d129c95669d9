// SPDX-License-Identifier: GPL-3.0-or-later
// Binds the buffers of a member Program to the members' blocks, and puts pieces together for whoever looks on.
#include "executor/sharding/grouptraining.h"

#include "core/base/diagnostic.h"
#include "core/workload/transformer.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/peers.h"
#include "executor/sharding/onedevice.h"
#include "executor/training/blockmemory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

namespace pipewright::sharding {

namespace {

/// Of a loss summed over the tokens of a microbatch, in the mean of a step.
float lossWeight(const ModelShape& shape, int microbatches)
{
    return 1.0f / static_cast<float>(shape.tokens() * microbatches);
}

HostTensor asFloats(std::span<const std::int32_t> values, const ModelShape& shape)
{
    HostTensor tensor(Shape{shape.microbatchSize, shape.sequence});
    std::copy(values.begin(), values.end(), tensor.data.begin());
    return tensor;
}

/// Between the transformer layers of the whole model.
std::vector<LayerSkip> skipsOf(const Design& design)
{
    std::vector<int> first; // transformer layers before a stage
    int before = 0;
    for (const int count : design.layersPerStage) {
        first.push_back(rangeOf(*design.workload, before, count).first);
        before += count;
    }
    std::vector<LayerSkip> skips;
    for (const SkipConnection& skip : design.dataflow.skips)
        skips.push_back(
            {first[static_cast<std::size_t>(skip.fromStage) + 1], first[static_cast<std::size_t>(skip.toStage)]});
    return skips;
}

} // namespace

struct GroupTraining::Member {
    GroupMember work;
    StageOptimizer optimizer;
    Region parameters;                          ///< as they are stored
    std::span<float> masters, gradients, state; ///< empty: another process's. Masters: the parameters, in fp32
    BufferId mastersBuffer = none, gradientsBuffer = none;

    /// To where they are computed with.
    void store(const kernels::Operations& on) const
    {
        if (work.isNarrow())
            on.run(kernels::Narrow{masters, {reinterpret_cast<std::uint16_t*>(parameters.data), masters.size()}});
    }
    std::vector<double> losses; ///< per microbatch: what this member has to add
};

Diagnostics whyGroupsDoNotTrain(const ModelShape& shape)
{
    Diagnostics why = pipewright::whyNotRunnable(shape);
    const auto need = [&why](bool holds, const char* field, const char* what, const char* hint) {
        if (!holds)
            why.push_back({Severity::Error, std::string("model.") + field, what, hint});
    };
    need(shape.architecture == Architecture::Decoder, "architecture", "groups train decoders", "use a decoder");
    need(shape.experts == 0 || shape.activation == Activation::Silu, "activation", "groups train experts with silu",
         "\"activation\": \"silu\"");
    need(shape.activation != Activation::ClampedSilu, "activation", "groups do not train clamped gates",
         "\"activation\": \"silu\"");
    need(shape.experts == 0
             || (shape.routerScore == RouterScore::Softmax && shape.routerGroups == 1 && shape.routerScale == 1
                 && shape.routerNormalised),
         "router_score", "groups train routers whose chosen weights are a softmax and sum to 1", "use such a router");
    need(!shape.attentionSinks, "attention_sinks", "groups train without attention sinks", "switch it off");
    need(shape.keyValueLatent == 0 && shape.queryLatent == 0, "key_value_latent",
         "groups train without latent attention", "use 0");
    need(shape.routerBalance == 0, "router_balance", "groups train without a load-balancing term", "use 0");
    need(!shape.expertBias && !shape.routerBias, "expert_bias", "groups train experts without biases",
         "switch them off");
    need(shape.sequencePieces == 1, "sequence_pieces", "groups train whole sequences", "use 1");
    return why;
}

StepData sampleStep(const TrainingData& data, const ModelShape& shape, int step, int microbatches)
{
    StepData found;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(shape.inputs()));
    std::vector<std::int32_t> targets(static_cast<std::size_t>(shape.tokens()));
    for (int m = 0; m < microbatches; ++m) {
        data.sample(step, m, tokens, targets);
        found.tokens.push_back(asFloats(tokens, shape));
        found.targets.push_back(asFloats(targets, shape));
    }
    return found;
}

ReferenceStep referenceStep(const Design& design, const WholeTensors& parameters, const StepData& data)
{
    const Workload& workload = *design.workload;
    const TensorGraph graph = transformerGraph(workload.shape, workload.state, 1, skipsOf(design));
    const auto host = createHostBackend(1);
    MemberDevice member(host->device(0));
    LeafValues leaves;
    for (const auto& [name, value] : parameters)
        leaves[graph.find(name)] = value;
    ReferenceStep result;
    const int microbatches = static_cast<int>(data.tokens.size());
    const float weight = lossWeight(workload.shape, microbatches);
    for (std::size_t m = 0; m < data.tokens.size(); ++m) {
        leaves[graph.find("tokens")] = data.tokens[m];
        leaves[graph.find("targets")] = data.targets[m];
        OneDevice device(member, graph, leaves, workload.shape.dataType == DataType::Bf16);
        device.step(weight);
        const SingleRun run = device.result();
        result.loss += run.loss * static_cast<double>(weight);
        for (const auto& [tensor, gradient] : run.gradients) {
            const auto [sum, isNew] = result.gradients.try_emplace(graph.node(tensor).name, gradient);
            if (!isNew)
                accumulate(sum->second, gradient);
        }
    }
    return result;
}

GroupTraining::GroupTraining(const Design& design, const GroupStages& stages, const OptimizerSettings& optimizer,
                             const TrainingData& data, std::uint64_t seed)
    : m_design(design), m_stages(stages), m_optimizer(optimizer), m_data(data), m_seed(seed),
      m_tiedHead(design.workload->shape.tiedHead)
{
    if (Diagnostics why = whyGroupsDoNotTrain(design.workload->shape); !why.empty())
        throw Error(std::move(why));
    for (const SharedStage& plan : stages.plans)
        m_theories.push_back(std::make_unique<Theory>(plan.graph, plan.machine, plan.plan.ratios));
    int first = 0;
    for (const int count : design.layersPerStage) {
        m_firstLayer.push_back(rangeOf(*design.workload, first, count).first
                               - stageRange(*design.workload, first, count).first);
        first += count;
    }
}

GroupTraining::~GroupTraining() = default;

std::string GroupTraining::nameOf(std::size_t copy, int tensor) const
{
    const std::string& name = m_stages.plans[copy].graph.node(tensor).name;
    if (m_tiedHead && name == headName)
        return embeddingName;
    int layer = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    const int first = m_firstLayer[copy % m_firstLayer.size()];
    return error == std::errc() ? std::to_string(layer + first) + std::string(end) : name;
}

GroupTraining::Member& GroupTraining::memberAt(int stage, int replica, int device) const
{
    const auto copy = static_cast<std::size_t>(m_stages.copyOf(stage, replica));
    return *m_members[copy][static_cast<std::size_t>(device - m_stages.firstOf(m_stages.deviceOfCopy[copy]))];
}

void GroupTraining::prepare(const Program& program, std::span<const Region> regions)
{
    m_program = &program;
    m_regions = regions;
    MemberDevice* here = nullptr;
    for (std::size_t d = 0; d < program.devices.size(); ++d) {
        Device& device = m_backend->device(static_cast<int>(d));
        MemberDevice* const own = m_backend->isLocal(static_cast<int>(d))
                                      ? m_devices.emplace_back(std::make_unique<MemberDevice>(device)).get()
                                      : m_devices.emplace_back().get();
        if (own && !device.capabilities().hostAddressable)
            throw Error(device.name(), "groups train in memory that the host can touch", "use --backend host");
        if (own)
            here = own;
    }
    for (std::size_t group = 0; group < m_stages.membersOfDevice.size(); ++group)
        m_collectives.push_back(collectivesOf(static_cast<int>(group)));
    const WholeTensors values = initialParameters(*m_design.workload, m_seed, m_start);
    m_members.resize(m_stages.stages.size());
    for (std::size_t s = 0; s < m_stages.stages.size(); ++s) {
        const auto group = static_cast<std::size_t>(m_stages.deviceOfCopy[s]);
        for (int m = 0; m < m_stages.membersOfDevice[group]; ++m) {
            const auto device = static_cast<std::size_t>(m_stages.firstOf(static_cast<int>(group)) + m);
            // Of another process's member only where its parameters lie is asked for here.
            GroupMember work(m, m_devices[device] ? *m_devices[device] : *here, *m_theories[s], m_stages.plans[s],
                             *m_collectives[group], CopyEdges(m_stages, static_cast<int>(s)), program.microbatches);
            work.setData([this](const Node& leaf, int microbatch) -> const HostTensor& {
                return (leaf.name == "tokens" ? m_step.tokens : m_step.targets)[static_cast<std::size_t>(microbatch)];
            });
            std::vector<StageOptimizer::Range> ranges;
            for (const MemberParameter& parameter : work.parameters())
                ranges.push_back({parameter.offset, parameter.count, parameter.isMatrix()});
            StageOptimizer optimizer(work.parameterCount(), std::move(ranges), m_optimizer);
            m_members[s].push_back(std::unique_ptr<Member>(
                new Member{std::move(work),
                           std::move(optimizer),
                           {},
                           {},
                           {},
                           {},
                           none,
                           none,
                           std::vector<double>(static_cast<std::size_t>(program.microbatches), 0.0)}));
        }
    }
    for (BufferId b = 0; b < program.buffers.size(); ++b) {
        const Buffer& buffer = program.buffers[b];
        const std::span<float> values = regions[b].data ? floats(regions[b]) : std::span<float>();
        if (buffer.kind == BufferKind::Parameters) {
            Member& member = memberAt(buffer.stage, buffer.replica, buffer.device);
            member.parameters = regions[b];
            if (!member.work.isNarrow()) {
                member.masters = values;
                member.mastersBuffer = b;
            }
        } else if (buffer.kind == BufferKind::Gradients) {
            Member& member = memberAt(buffer.stage, buffer.replica, buffer.device);
            member.gradients = values;
            member.gradientsBuffer = b;
        } else if (buffer.kind == BufferKind::OptimizerState) {
            Member& member = memberAt(buffer.stage, buffer.replica, buffer.device);
            const std::size_t masters = member.work.isNarrow() ? member.work.parameterCount() : 0;
            member.state = values.empty() ? values : values.subspan(masters);
            if (member.work.isNarrow()) { // before the optimizer's own
                member.masters = values.empty() ? values : values.first(masters);
                member.mastersBuffer = b;
            }
        }
    }
    for (std::size_t s = 0; s < m_members.size(); ++s)
        for (const auto& member : m_members[s]) {
            if (member->masters.empty())
                continue;
            for (const MemberParameter& parameter : member->work.parameters()) {
                const HostTensor piece =
                    member->work.pieceOf(values.at(nameOf(s, parameter.stored.tensor)), parameter.stored);
                std::copy(piece.data.begin(), piece.data.end(),
                          member->masters.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
            }
            member->store(kernels::hostOperations());
            std::fill(member->state.begin(), member->state.end(), 0.0f);
        }
    bindBlocks(regions);
}

std::unique_ptr<MemberCollectives> GroupTraining::collectivesOf(int group)
{
    std::vector<MemberDevice*> members;
    std::vector<int> numbers, others;
    for (int m = 0; m < m_stages.membersOfDevice[static_cast<std::size_t>(group)]; ++m) {
        numbers.push_back(m_stages.firstOf(group) + m);
        members.push_back(m_devices[static_cast<std::size_t>(numbers.back())].get());
        if (!members.back())
            others.push_back(numbers.back());
    }
    if (others.empty() || others.size() == members.size()) // all are here, or none is
        return createCollectives(std::move(members), {});
    m_exchange = m_backend->peers()->createExchange(others);
    return createCollectives(std::move(members), *m_exchange, std::move(numbers));
}

BufferKind GroupTraining::kindOfParameters() const
{
    return m_design.workload->shape.dataType == DataType::Bf16 ? BufferKind::OptimizerState : BufferKind::Parameters;
}

Region GroupTraining::mirrorOf(BufferId buffer)
{
    const Region region = m_regions[buffer];
    if (region.data)
        return region;
    std::vector<std::byte>& mirror = m_mirrors[buffer];
    mirror.resize(static_cast<std::size_t>(region.bytes));
    return {mirror.data(), region.bytes};
}

void GroupTraining::bindBlocks(std::span<const Region> regions)
{
    const Program& program = *m_program;
    const float weight = lossWeight(m_design.workload->shape, program.microbatches);
    m_blockOfTask.assign(program.tasks.size(), nullptr);
    std::map<std::tuple<int, int, int, Op>, GroupMember::Block*> blocks; // stage, microbatch, device
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind != TaskKind::Compute)
            continue;
        GroupMember::Block*& block = blocks[{task.stage, task.microbatch, task.device, task.op}];
        if (!block) {
            block = m_blocks.emplace_back(std::make_unique<GroupMember::Block>()).get();
            const Member& member = memberAt(task.stage, task.replica, task.device);
            block->op = task.op;
            block->microbatch = task.microbatch;
            block->parameters = member.parameters;
            block->gradients = member.gradients;
            block->lossWeight = weight;
            block->keepsNothing = task.op == Op::F && m_design.schedule.recomputeOf(task.stage) == Recompute::Full;
        }
        m_blockOfTask[t] = block;
        const bool isFirst = program.partOfTask[t] == 0;
        for (const BufferId b : program.reads(t))
            if (isFirst)
                bind(program.buffers[b], regions[b], *block, true);
        for (const BufferId b : program.writes(t))
            bind(program.buffers[b], regions[b], *block, false);
    }
}

void GroupTraining::bind(const Buffer& buffer, Region region, GroupMember::Block& block, bool read)
{
    switch (buffer.kind) {
    case BufferKind::Output:
    case BufferKind::ReceivedOutput:
    case BufferKind::Gradient:
    case BufferKind::ReceivedGradient: (read ? block.arrived : block.handed).push_back(region); return;
    case BufferKind::RecomputedUntilWeightGrad:
    case BufferKind::SavedUntilWeightGrad:
    case BufferKind::ReloadedUntilWeightGrad: block.saved = region; return;
    case BufferKind::OffloadedUntilWeightGrad: return; // not of a pass
    case BufferKind::SavedFromInputGrad: block.savedFromInputGrad = region; return;
    case BufferKind::Workspace: block.workspace = region; return;
    case BufferKind::Parameters:
    case BufferKind::Gradients:
    case BufferKind::OptimizerState:
    case BufferKind::SavedUntilInputGrad:
    case BufferKind::RecomputedUntilInputGrad:
    case BufferKind::SequenceGradient:
    case BufferKind::ReduceInbox:
    case BufferKind::WeightVersion:
    case BufferKind::PredictedWeights:
    case BufferKind::SentWeights:
    case BufferKind::ReceivedWeights:
    case BufferKind::PartialGradient:
    case BufferKind::ReceivedPartialGradient:
    case BufferKind::OffloadedUntilInputGrad:
    case BufferKind::ReloadedUntilInputGrad: break;
    }
    throw Error("group", "a member's block has a buffer that it does not know",
                "this is a fault of the program: please report it with the design");
}

void GroupTraining::beginStep(int step)
{
    m_step = sampleStep(m_data, m_design.workload->shape, step, m_program->microbatches);
    for (const auto& stage : m_members)
        for (const auto& member : stage) {
            std::fill(member->gradients.begin(), member->gradients.end(), 0.0f);
            std::fill(member->losses.begin(), member->losses.end(), 0.0);
        }
}

double GroupTraining::endStep(int)
{
    if (m_exchange)
        m_exchange->endStep();
    double loss = 0;
    for (int m = 0; m < m_program->microbatches; ++m)
        for (const auto& member :
             m_members[static_cast<std::size_t>(m_stages.copyOf(m_program->stages() - 1, m_program->replicaOf(m)))])
            loss += member->losses[static_cast<std::size_t>(m)];
    return loss * static_cast<double>(lossWeight(m_design.workload->shape, m_program->microbatches));
}

void GroupTraining::compute(const TaskContext& context)
{
    const Task& task = *context.task;
    Member& member = memberAt(task.stage, task.replica, context.device);
    const int part = m_program->partOfTask[context.id];
    if (part == 0)
        member.work.begin(*m_blockOfTask[context.id]);
    member.work.part(part);
    const std::size_t parts = m_stages.stages[static_cast<std::size_t>(m_stages.copyOf(task.stage, task.replica))]
                                  .passes[indexOf(task.op)]
                                  .parts.size();
    if (static_cast<std::size_t>(part) + 1 < parts)
        return;
    member.work.end();
    if (task.op == Op::F && task.stage + 1 == m_program->stages())
        member.losses[static_cast<std::size_t>(task.microbatch)] = member.work.loss();
}

void GroupTraining::collective(const TaskContext& context)
{
    const Task& task = *context.task;
    const auto group = static_cast<std::size_t>(m_program->groupOfDevice[static_cast<std::size_t>(context.device)]);
    m_collectives[group]->stopWith(context.stopped, context.stream);
    try {
        memberAt(task.stage, task.replica, context.device).work.collective(m_program->partOfTask[context.id]);
    } catch (const Stopped&) { // the runtime knows
    }
}

void GroupTraining::update(const TaskContext& context)
{
    Member& member = memberAt(context.task->stage, context.task->replica, context.device);
    member.optimizer.update(*context.operations, context.step + 1, member.masters, member.gradients, member.state);
    member.store(*context.operations);
}

void GroupTraining::reduce(const TaskContext& context, Region, Region, bool)
{
    const Task& task = *context.task;
    const int part = m_program->partOfTask[context.id], copy = m_stages.copyOf(task.stage, task.replica);
    const SharedSum& sum = m_stages.sums[static_cast<std::size_t>(part / 2)];
    const bool adds = part % 2 == 1, isRoot = copy == sum.root, toRoot = adds == isRoot;
    Member& member = memberAt(task.stage, task.replica, context.device);
    const int own = context.device - m_stages.firstOf(m_stages.deviceOfCopy[static_cast<std::size_t>(copy)]);
    const auto views = adds ? context.reads : context.writes;
    std::size_t view = 0;
    for (int peer = 0; peer < m_stages.membersOf(isRoot ? sum.other : sum.root); ++peer) {
        const int from = adds ? peer : own, to = adds ? own : peer;
        if (sum.bytes(toRoot, from, to) == 0)
            continue;
        std::span<float> packed = floats(views[view++].region);
        for (const SharedSum::Parameter& parameter : sum.parameters)
            for (const BoundaryPiece& piece : toRoot ? parameter.toRoot : parameter.toOther)
                if (piece.from == from && piece.to == to)
                    member.work.eachRun(isRoot ? parameter.ofRoot : parameter.ofOther, piece,
                                        [&](std::size_t first, std::size_t count) {
                                            const std::span<float> here = member.gradients.subspan(first, count);
                                            if (adds)
                                                context.operations->run(kernels::Add{here, packed.first(count)});
                                            else
                                                context.operations->copy(here, packed.first(count));
                                            packed = packed.subspan(count);
                                        });
    }
}

WholeTensors GroupTraining::whole(BufferKind kind) const
{
    WholeTensors found;
    for (std::size_t s = 0; s < static_cast<std::size_t>(m_stages.perReplica); ++s) { // replicas have the same
        const std::vector<MemberParameter>& layout = m_members[s].front()->work.parameters();
        for (std::size_t p = 0; p < layout.size(); ++p) {
            std::vector<HostTensor> pieces;
            for (const auto& member : m_members[s]) {
                const MemberParameter& place = member->work.parameters()[p];
                const bool gradients = kind == BufferKind::Gradients;
                std::span<const float> values = gradients ? member->gradients : member->masters;
                if (values.empty())
                    if (const auto mirror = m_mirrors.find(gradients ? member->gradientsBuffer : member->mastersBuffer);
                        mirror != m_mirrors.end())
                        values = {reinterpret_cast<const float*>(mirror->second.data()),
                                  mirror->second.size() / sizeof(float)};
                values = values.subspan(place.offset, place.count);
                HostTensor piece(member->work.shapeOf(place.stored));
                std::copy(values.begin(), values.end(), piece.data.begin());
                pieces.push_back(std::move(piece));
            }
            std::vector<const HostTensor*> held;
            for (const HostTensor& piece : pieces)
                held.push_back(&piece);
            const Relation relation = layout[p].stored.relation;
            found.emplace(nameOf(s, layout[p].stored.tensor), relation.kind == RelationKind::Gather
                                                                  ? joined(held, relation.dim)
                                                                  : std::move(pieces.front()));
        }
    }
    return found;
}

} // namespace pipewright::sharding
