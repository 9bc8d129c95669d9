// SPDX-License-Identifier: GPL-3.0-or-later
// Binds the buffers of a member Program to the members' blocks, and puts pieces together for callers that read whole
// tensors.
#include "executor/sharding/grouptraining.h"

#include "core/base/diagnostic.h"
#include "core/model/transformer.h"
#include "executor/runtime/peers.h"
#include "executor/sharding/trainedmember.h"
#include "executor/training/blockmemory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

namespace pipewright::sharding {

GroupTraining::GroupTraining(std::unique_ptr<GroupModel> model, const GroupStages& stages,
                             const OptimizerSettings& optimizer, std::vector<Recompute> recompute)
    : m_model(std::move(model)), m_stages(stages), m_optimizer(optimizer), m_recompute(std::move(recompute))
{
    for (const SharedStage& plan : stages.plans)
        m_theories.push_back(std::make_unique<Theory>(plan.graph, plan.machine, plan.plan.ratios));
}

GroupTraining::~GroupTraining() = default;

void GroupTraining::watch(int device, MemberObserver& observer)
{
    for (std::size_t s = 0; s < m_members.size(); ++s)
        if (const int member = device - m_stages.firstOf(m_stages.deviceOfCopy[s]);
            member >= 0 && member < static_cast<int>(m_members[s].size()))
            m_members[s][static_cast<std::size_t>(member)]->work.watch(&observer);
}

GroupTraining::Member& GroupTraining::memberAt(int stage, int replica, int device) const
{
    const auto copy = static_cast<std::size_t>(m_stages.copyOf(stage, replica));
    return *m_members[copy][static_cast<std::size_t>(device - m_stages.firstOf(m_stages.deviceOfCopy[copy]))];
}

Bytes GroupTraining::bytesBeside(const Program& program, int device, const Capabilities& capabilities) const
{
    Bytes bytes = 0;
    for (std::size_t s = 0; s < m_stages.stages.size() && !capabilities.hostAddressable; ++s) {
        const int member = device - m_stages.firstOf(m_stages.deviceOfCopy[s]);
        if (member >= 0 && member < m_stages.membersOf(static_cast<int>(s)))
            bytes += MemberData::bytes(*m_theories[s], m_stages.plans[s], CopyEdges(m_stages, static_cast<int>(s)),
                                       member, program.microbatches);
    }
    return bytes + TrainedWork::bytesBeside(program, device, capabilities);
}

void GroupTraining::prepare(const Program& program, std::span<const Region> regions)
{
    useProgram(program, regions);
    MemberDevice* here = nullptr;
    for (std::size_t d = 0; d < program.devices.size(); ++d) {
        Device& device = m_backend->device(static_cast<int>(d));
        MemberDevice* const own = m_backend->isLocal(static_cast<int>(d))
                                      ? m_devices.emplace_back(std::make_unique<MemberDevice>(device)).get()
                                      : m_devices.emplace_back().get();
        if (own)
            here = own;
    }
    for (std::size_t group = 0; group < m_stages.membersOfDevice.size(); ++group)
        m_collectives.push_back(collectivesOf(static_cast<int>(group)));
    const WholeTensors values = m_model->parameters();
    m_members.resize(m_stages.stages.size());
    for (std::size_t s = 0; s < m_stages.stages.size(); ++s) {
        const auto group = static_cast<std::size_t>(m_stages.deviceOfCopy[s]);
        for (int m = 0; m < m_stages.membersOfDevice[group]; ++m) {
            const auto device = static_cast<std::size_t>(m_stages.firstOf(static_cast<int>(group)) + m);
            // For another process's member only the places of its parameters are needed here.
            GroupMember work(m, m_devices[device] ? *m_devices[device] : *here, *m_theories[s], m_stages.plans[s],
                             *m_collectives[group], CopyEdges(m_stages, static_cast<int>(s)), program.microbatches,
                             program.sequencePieces, m_model->balanceOver());
            std::vector<StageOptimizer::Range> ranges;
            for (const MemberParameter& parameter : work.parameters())
                ranges.push_back({parameter.offset, parameter.count, parameter.isMatrix, parameter.isCorrection,
                                  m_model->correctionRate()});
            const ReplicaShare share = shareOf(work.parameterCount(), static_cast<int>(s) / m_stages.perReplica);
            const StageOptimizer all(work.parameterCount(), std::move(ranges), m_optimizer);
            Member& member = *m_members[s].emplace_back(std::unique_ptr<Member>(
                new Member{std::move(work),
                           all.part(static_cast<std::size_t>(share.begin), static_cast<std::size_t>(share.count())),
                           m_devices[device].get(), static_cast<int>(device)}));
            if (!member.device)
                continue;
            member.data =
                std::make_unique<MemberData>(member.work, m_stages.plans[s], CopyEdges(m_stages, static_cast<int>(s)),
                                             *member.device, program.microbatches);
            member.work.setData([data = member.data.get()](const Property& stored, int microbatch, std::size_t) {
                return data->piece(stored, microbatch);
            });
        }
    }
    for (BufferId b = 0; b < program.buffers.size(); ++b) {
        const Buffer& buffer = program.buffers[b];
        if (!isPersistent(buffer.kind))
            continue;
        Member& member = memberAt(buffer.stage, buffer.replica, buffer.device);
        bindCopy(b, member.work.parameterCount(), member.copy);
    }
    for (std::size_t s = 0; s < m_members.size(); ++s)
        for (const auto& member : m_members[s])
            if (member->device)
                initialise(*member, s, values);
    bindBlocks(regions);
    if (program.versioned())
        prepareVersions();
}

/// A backward may read other weights than its forward did. Its member has these as they are stored, but what was
/// exchanged of them is the forward's.
void GroupTraining::prepareVersions()
{
    const Program& program = *m_program;
    m_versions.prepare(program);
    std::map<std::pair<int, int>, WeightUse> ofForward; // stage, microbatch
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (const Task& task = program.tasks[t]; task.kind == TaskKind::Compute && task.op == Op::F)
            ofForward[{task.stage, task.microbatch()}] = program.weights[t];
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind != TaskKind::Compute || !makesInputGrad(task.op))
            continue;
        const WeightUse &here = program.weights[t], &before = ofForward[{task.stage, task.microbatch()}];
        if (here.version == before.version && here.steps == before.steps)
            continue;
        const SharedStage& stage = m_stages.plans[static_cast<std::size_t>(m_stages.copyOf(task.stage, 0))];
        for (const ShardingInstruction& instruction : stage.plan.program.instructions)
            if (!instruction.computes() && instruction.action != Action::Load
                && stage.graph.node(instruction.after.tensor).leaf == Leaf::Parameter)
                throw Error(program.label(t),
                            fmt::format("its weights are another version than its forward's, and the members "
                                        "exchanged {} there",
                                        stage.graph.node(instruction.after.tensor).name),
                            "use another --sharding for the stage, or a family whose backwards read what their "
                            "forwards read, such as pipedream");
    }
}

void GroupTraining::initialise(Member& member, std::size_t copy, const WholeTensors& values)
{
    std::vector<float> all(member.work.parameterCount());
    for (const MemberParameter& parameter : member.work.parameters()) {
        const HostTensor piece = member.work.pieceOf(values.at(nameOf(copy, parameter.stored)), parameter.stored);
        std::copy(piece.data.begin(), piece.data.end(), all.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
    }
    TrainedWork::initialise(member.copy, member.number, static_cast<int>(copy) / m_stages.perReplica, all);
}

TrainedWork::Access GroupTraining::access(int device)
{
    MemberDevice& own = *m_devices[static_cast<std::size_t>(device)];
    own.workOnOwn();
    return {&own.device(), &own.stream(), &own.operations()};
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
        return createCollectives(std::move(members), others.empty() && numbers.size() > 1
                                                         ? m_backend->createCommunicators(numbers)
                                                         : std::vector<std::unique_ptr<Communicator>>());
    if (auto communicators = m_backend->createCommunicators(numbers); !communicators.empty())
        return createCollectives(std::move(members), std::move(communicators));
    m_exchange = m_backend->peers()->createExchange(others);
    return createCollectives(std::move(members), *m_exchange, std::move(numbers));
}

std::string GroupTraining::nameOf(std::size_t copy, const Property& parameter) const
{
    return m_model->nameOf(copy, m_stages.plans[copy].graph.node(parameter.tensor));
}

bool GroupTraining::recomputesAll(int stage) const
{
    const auto at = static_cast<std::size_t>(stage);
    return at < m_recompute.size() && m_recompute[at] == Recompute::Block;
}

bool GroupTraining::isBf16() const
{
    return m_stages.plans.front().graph.bytesPerElement == pipewright::bytesOf(DataType::Bf16);
}

void GroupTraining::bindBlocks(std::span<const Region> regions)
{
    const Program& program = *m_program;
    const float weight = m_model->lossWeight();
    m_blockOfTask.assign(program.tasks.size(), nullptr);
    std::map<std::tuple<int, int, int, Op>, GroupMember::Block*> blocks; // stage, microbatch, device
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind != TaskKind::Compute)
            continue;
        GroupMember::Block*& block = blocks[{task.stage, task.microbatch(), task.device, task.op}];
        if (!block) {
            block = m_blocks.emplace_back(std::make_unique<GroupMember::Block>()).get();
            const Member& member = memberAt(task.stage, task.replica, task.device);
            block->op = task.op;
            block->microbatch = task.microbatch();
            block->parameters = {member.copy.stored.data(), static_cast<Bytes>(member.copy.stored.size())};
            block->gradients = member.copy.gradients;
            block->lossWeight = weight;
            if (member.data && task.op == Op::F)
                block->loss = member.data->loss(task.microbatch());
            block->keepsNothing = task.op == Op::F && recomputesAll(task.stage);
        }
        m_blockOfTask[t] = block;
        const bool isFirst = program.partOfTask[t] == 0;
        for (const BufferId b : program.reads(t))
            if (isFirst)
                bind(program.buffers[b], regions[b], *block, true);
        for (const BufferId b : program.writes(t)) {
            bind(program.buffers[b], regions[b], *block, false);
            if (program.buffers[b].kind == BufferKind::Gradient)
                block->handsEarly = !isLastPart(t);
        }
    }
}

void GroupTraining::bind(const Buffer& buffer, Region region, GroupMember::Block& block, bool read)
{
    using enum BufferKind;
    const BufferKind kind = buffer.kind;
    if (kind == WeightVersion || kind == PredictedWeights)
        return; // found by VersionedWeights, when the block begins
    if (buffer.microbatch != block.microbatch && kind != SequenceGradient)
        block.earlier.emplace_back(buffer.microbatch, region);
    else if (kind == Output || kind == ReceivedOutput || kind == Gradient || kind == ReceivedGradient)
        (read ? block.arrived : block.handed).push_back(region);
    else if (kind == SavedUntilWeightGrad || kind == RecomputedUntilWeightGrad || kind == ReloadedUntilWeightGrad)
        block.saved = region;
    else if (kind == SavedFromInputGrad)
        block.savedFromInputGrad = region;
    else if (kind == Workspace)
        block.workspace = region;
    else if (kind == SequenceGradient)
        block.sequenceGradient = floats(region);
    else if (kind != OffloadedUntilWeightGrad) // no pass uses this kind
        throw Error("group", "a member's block has a buffer that it does not know",
                    "this is a fault of the program: please report it with the design");
}

void GroupTraining::beginStep(int step)
{
    m_model->beginStep(step);
    std::vector<StageCopy> copies;
    for (const auto& device : m_devices)
        if (device)
            device->workOnOwn();
    for (const auto& stage : m_members)
        for (const auto& member : stage) {
            if (!member->device)
                continue;
            clearGradients(member->copy, member->number);
            copies.push_back(member->copy);
            member->data->write([this](const Node& leaf, int microbatch) -> const HostTensor& {
                return m_model->data(leaf, microbatch);
            });
        }
    if (m_program->versioned())
        m_versions.beginStep(copies);
    for (const auto& device : m_devices)
        if (device)
            device->synchronize();
}

double GroupTraining::endStep(int)
{
    if (m_exchange)
        m_exchange->endStep();
    for (const auto& device : m_devices)
        if (device)
            device->workOnOwn();
    std::map<const Member*, std::vector<float>> losses;
    double loss = 0;
    for (int m = 0; m < m_program->microbatches; ++m)
        for (const auto& member :
             m_members[static_cast<std::size_t>(m_stages.copyOf(m_program->stages() - 1, m_program->replicaOf(m)))]) {
            if (!member->data)
                continue;
            const auto [found, isNew] = losses.try_emplace(member.get());
            if (isNew)
                found->second = member->data->losses();
            loss += static_cast<double>(found->second[static_cast<std::size_t>(m)]);
        }
    return m_model->lossOfStep(loss);
}

void GroupTraining::compute(const TaskContext& context)
{
    const Task& task = *context.task;
    Member& member = memberAt(task.stage, task.replica, context.device);
    const int part = m_program->partOfTask[context.id];
    member.device->workOn(*context.stream, *context.operations);
    if (part == 0) {
        GroupMember::Block& block = *m_blockOfTask[context.id];
        if (m_program->versioned() && usesWeights(task.op)) {
            const auto weights = m_versions.beforeBlock(context, member.copy, isBf16(), member.optimizer);
            block.parameters = {const_cast<std::byte*>(weights.data()),
                                static_cast<Bytes>(weights.size())}; // read only
        }
        member.work.begin(block);
        member.choices = m_choices ? m_choices->on(context.id) : std::span<std::int32_t>();
    }
    if (!member.choices.empty()) {
        const KeepingChoices keeping(*context.operations, member.choices);
        member.device->workOn(*context.stream, keeping);
        member.work.part(part);
        member.device->workOn(*context.stream, *context.operations);
        member.choices = keeping.left();
    } else {
        member.work.part(part);
    }
    if (isLastPart(context.id))
        member.work.end();
}

bool GroupTraining::isLastPart(TaskId id) const
{
    const Task& task = m_program->tasks[id];
    const std::vector<std::vector<Nanoseconds>>& parts =
        m_stages.stages[static_cast<std::size_t>(m_stages.copyOf(task.stage, task.replica))]
            .passes[indexOf(task.op)]
            .parts;
    return static_cast<std::size_t>(m_program->partOfTask[id]) + 1 == parts.size();
}

void GroupTraining::collective(const TaskContext& context)
{
    const Task& task = *context.task;
    const auto group = static_cast<std::size_t>(m_program->groupOfDevice[static_cast<std::size_t>(context.device)]);
    m_collectives[group]->stopWith(context.stopped, context.stream);
    Member& member = memberAt(task.stage, task.replica, context.device);
    member.device->workOn(*context.stream, *context.operations);
    try {
        member.work.collective(m_program->partOfTask[context.id]);
    } catch (const Stopped&) { // the runtime already knows the reason
    }
}

/// A block is captured as a whole or not at all: launching a captured part would not make the tensors that the
/// remaining parts read.
bool GroupTraining::repeats(const Task& task) const
{
    const auto group = static_cast<std::size_t>(
        m_stages.deviceOfCopy[static_cast<std::size_t>(m_stages.copyOf(task.stage, task.replica))]);
    return m_stages.membersOfDevice[group] == 1 || m_collectives[group]->repeats();
}

void GroupTraining::inTurn(const TaskContext& context, const std::function<void()>& give)
{
    const auto group = static_cast<std::size_t>(m_program->groupOfDevice[static_cast<std::size_t>(context.device)]);
    m_collectives[group]->inTurn(context.device - m_stages.firstOf(static_cast<int>(group)), give);
}

void GroupTraining::abort()
{
    for (const auto& collectives : m_collectives)
        collectives->abort();
}

void GroupTraining::awaitCalls()
{
    for (const auto& collectives : m_collectives)
        collectives->awaitCalls();
}

WholeTensors GroupTraining::whole(BufferKind kind) const
{
    return whole([&](std::size_t stage, std::size_t member) {
        const auto deviceOf = [&](int replica) {
            const int copy = m_stages.copyOf(static_cast<int>(stage), replica);
            return m_stages.firstOf(m_stages.deviceOfCopy[static_cast<std::size_t>(copy)]) + static_cast<int>(member);
        };
        return valuesOf(kind, static_cast<int>(stage), m_members[stage][member]->work.parameterCount(), deviceOf);
    });
}

StageValues GroupTraining::optimizerState() const
{
    StageValues all(static_cast<std::size_t>(m_stages.perReplica));
    const Member& any = *m_members.front().front();
    const std::size_t moments =
        any.work.parameterCount() > 0 ? any.optimizer.stateElements() / any.work.parameterCount() : 0;
    for (std::size_t moment = 0; moment < moments; ++moment) { // each lies as the parameters do
        const StageValues values = m_model->byStage(whole([&](std::size_t stage, std::size_t index) {
            const Member& member = *m_members[stage][index];
            const std::size_t count = member.work.parameterCount();
            const std::span<const float> own =
                onHost(BufferKind::OptimizerState, static_cast<int>(stage), 0, member.number)
                    .last(member.optimizer.stateElements()) // behind the master copies
                    .subspan(moment * count, count);
            return std::vector<float>(own.begin(), own.end());
        }));
        for (std::size_t stage = 0; stage < all.size(); ++stage)
            all[stage].insert(all[stage].end(), values[stage].begin(), values[stage].end());
    }
    return all;
}

WholeTensors GroupTraining::whole(const ValuesOn& valuesOn) const
{
    WholeTensors found;
    for (std::size_t s = 0; s < static_cast<std::size_t>(m_stages.perReplica); ++s) {
        std::vector<std::vector<float>> values;
        for (std::size_t m = 0; m < m_members[s].size(); ++m)
            values.push_back(valuesOn(s, m));
        const std::vector<MemberParameter>& layout = m_members[s].front()->work.parameters();
        for (std::size_t p = 0; p < layout.size(); ++p) {
            std::vector<HostTensor> pieces;
            for (std::size_t m = 0; m < values.size(); ++m) {
                const MemberParameter& place = m_members[s][m]->work.parameters()[p];
                HostTensor& piece = pieces.emplace_back(m_members[s][m]->work.shapeOf(place.stored));
                const auto first = values[m].begin() + static_cast<std::ptrdiff_t>(place.offset);
                std::copy(first, first + static_cast<std::ptrdiff_t>(place.count), piece.data.begin());
            }
            std::vector<const HostTensor*> held;
            for (const HostTensor& piece : pieces)
                held.push_back(&piece);
            const Relation relation = layout[p].stored.relation;
            found.emplace(nameOf(s, layout[p].stored), relation.kind == RelationKind::Gather
                                                           ? joined(held, relation.dim)
                                                           : std::move(pieces.front()));
        }
    }
    return found;
}

} // namespace pipewright::sharding
