// SPDX-License-Identifier: GPL-3.0-or-later
// How a member is made, how its blocks begin and end, and the forwards of instructions. What they have for the two
// backward passes is in memberbackward.cpp.
#include "executor/sharding/groupmember.h"

#include "core/sharding/shards.h"
#include "executor/sharding/instructionfacts.h"
#include "executor/stage/kernelsettings.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::sharding {

GroupMember::GroupMember(int member, MemberDevice& device, const Theory& theory, const SharedStage& stage,
                         MemberCollectives& collectives, CopyEdges edges, int microbatches, int pieces,
                         double balanceOver)
    : m_member(member), m_device(device), m_theory(theory), m_stage(stage), m_collectives(collectives),
      m_narrow(stage.graph.bytesPerElement == pipewright::bytesOf(DataType::Bf16)), m_edges(std::move(edges)),
      m_passes(memberPasses(stage.plan.program, stage.graph)), m_full(m_passes.inputGrad), m_pieces(pieces),
      m_balanceOver(balanceOver), m_microbatches(static_cast<std::size_t>(microbatches))
{
    m_full.insert(m_full.end(), m_passes.weightGrad.begin(), m_passes.weightGrad.end());
    for (const ShardingInstruction& instruction : stage.plan.program.instructions)
        if (instruction.computes() && !isHandOver(instruction))
            resolve(instruction);
    // The value that is handed over, or the loss, is read after the last step.
    const ShardingInstruction& last = stage.plan.program.instructions.back();
    std::set<Property> seen = m_readLater;
    seen.insert(last.before.begin(), last.before.end());
    seen.insert(last.after);
    m_lastReadBy.resize(m_passes.forward.size());
    for (std::size_t i = m_passes.forward.size(); i-- > 0;) {
        const ShardingInstruction& instruction = at(m_passes.forward[i]);
        for (const Property& property : instruction.before)
            if (seen.insert(property).second)
                m_lastReadBy[i].push_back(property);
        if (seen.insert(instruction.after).second) // no step reads it
            m_lastReadBy[i].push_back(instruction.after);
    }
    std::set<int> loaded;
    for (const ShardingInstruction& instruction : stage.plan.program.instructions) {
        if (instruction.computes() || instruction.action != Action::Load)
            continue;
        if (!loaded.insert(instruction.tensor).second)
            throw Error(stage.graph.node(instruction.tensor).name, "is loaded in two ways, which a group does not run",
                        "give the sharding other ratios");
        if (leafOf(instruction.after) == Leaf::Received)
            m_receivedLoad = instruction.after;
        if (leafOf(instruction.after) == Leaf::Input || (leafOf(instruction.after) == Leaf::Received && isAlone()))
            m_inputs.push_back(instruction.after);
        if (leafOf(instruction.after) != Leaf::Parameter)
            continue;
        const Shape shape = shapeOf(instruction.after);
        m_parameterAt[instruction.after] = m_parameters.size();
        const Node& node = stage.graph.node(instruction.tensor);
        const LayerParameter::Start start = node.start;
        m_parameters.push_back(
            {instruction.after, m_parameterCount, product(shape.begin(), shape.end()),
             shape.size() > 1 && (start == LayerParameter::Start::Normal || start == LayerParameter::Start::Residual),
             !node.trained});
        m_parameterCount += m_parameters.back().count;
    }
}

HostTensor GroupMember::pieceOf(const HostTensor& whole, const Property& stored) const
{
    if (stored.relation.kind != RelationKind::Gather)
        return whole;
    const Cut cut = cutOf(stored);
    return sharding::cut(whole, cut.dim, cut.first(m_member), cut.length(m_member));
}

const MemberPass& GroupMember::passOf(Op op) const
{
    switch (op) {
    case Op::F:
    case Op::R: return m_passes.forward;
    case Op::I: return m_passes.inputGrad;
    case Op::W: return m_passes.weightGrad;
    case Op::B: return m_full;
    case Op::U: break;
    }
    throw Error("group", fmt::format("a group's members do not run a {}", describe(op)), "use forwards and backwards");
}

void GroupMember::begin(const Block& block)
{
    m_block = block;
    m_collectivesOfPass = collectivesOf(passOf(block.op), m_theory.machine().devices());
    m_device.useMemory(&m_passing);
    m_passing.rewind(block.workspace);
    m_gradients.clear();
    if (block.op == Op::F || block.op == Op::R) {
        kept() = {};
        kept().region = block.saved;
        m_kept.rewind(block.saved);
    }
    for (const auto& [microbatch, region] : block.earlier)
        moveKept(microbatch, region);
    if (makesInputGrad(block.op) || makesWeightGrad(block.op))
        moveKept(block.microbatch, block.saved);
    // What F read may have been replaced, and a backward may read other weights.
    if (makesInputGrad(block.op))
        for (const MemberParameter& parameter : m_parameters)
            kept().values[parameter.stored] = stored(parameter);
    if (makesInputGrad(block.op))
        m_keptGradients.rewind(block.savedFromInputGrad);
    if (makesInputGrad(block.op)) {
        const Property last = m_stage.plan.program.instructions.back().after;
        if (!isHandOver(m_stage.plan.program.instructions.back())) {
            // If the loss is a sum over members, its gradient is the weight on each of them. If it is whole on every
            // member, the gradient is a sum, and the first member alone has the weight.
            Tensor one = m_device.make(Shape{});
            const bool counts = last.relation.kind == RelationKind::Reduce || m_member == 0;
            m_device.operations().run(kernels::Fill{one.data, counts ? block.lossWeight : 0});
            m_gradients[last] = std::move(one);
        }
    }
}

void GroupMember::part(int index)
{
    const auto at = static_cast<std::size_t>(index);
    const std::size_t from = at == 0 ? 0 : m_collectivesOfPass[at - 1] + 1;
    const std::size_t to = at < m_collectivesOfPass.size() ? m_collectivesOfPass[at] : passOf(m_block.op).size();
    // The input gradient is sent after this part, as in the Program, also when its last step is the collective before
    // the part.
    if (const std::size_t whole = m_passes.inputGrad.size(); m_block.handsEarly && from <= whole && whole <= to) {
        run(from, whole);
        handBack();
        run(whole, to);
        return;
    }
    run(from, to);
}

void GroupMember::collective(int index)
{
    const std::size_t at = m_collectivesOfPass[static_cast<std::size_t>(index)];
    run(at, at + 1);
}

void GroupMember::run(std::size_t from, std::size_t to)
{
    const MemberPass& pass = passOf(m_block.op);
    for (std::size_t i = from; i < to; ++i) {
        run(pass[i]);
        if (const Property& made = at(pass[i]).after; m_observer && m_block.op == Op::F && kept().values.contains(made))
            m_observer->value(m_device, made, value(made));
        if (m_block.keepsNothing)
            dropValuesAfter(i);
    }
}

void GroupMember::dropValuesAfter(std::size_t step)
{
    for (const Property& property : m_lastReadBy[step])
        kept().values.erase(property);
}

void GroupMember::end()
{
    const ShardingInstruction& last = m_stage.plan.program.instructions.back();
    if (m_block.op == Op::F) {
        if (isHandOver(last)) {
            handOut(value(last.before.front()), last.before.front(), m_edges.out, &StageEdge::output);
        } else {
            const Property loss = last.after;
            if (loss.relation.kind == RelationKind::Reduce || m_member == 0)
                m_device.operations().copy(std::span<const float>(value(loss).data), m_block.loss);
        }
        if (m_block.keepsNothing)
            std::erase_if(kept().values, [this](const auto& value) { return !m_readLater.contains(value.first); });
    }
    if (makesInputGrad(m_block.op) && !m_block.handsEarly)
        handBack();
    m_gradients.clear();
    m_factorRows = m_factorGrads = m_visits = {};
    if (makesWeightGrad(m_block.op))
        kept() = {};
    m_device.useMemory(nullptr);
}

void GroupMember::handBack()
{
    if (!m_receivedLoad)
        return;
    const Tensor gradient = takeGradient(*m_receivedLoad);
    handOut(gradient, *m_receivedLoad, m_edges.in, &StageEdge::gradients);
}

void GroupMember::run(const MemberStep& step)
{
    const ShardingInstruction& instruction = at(step);
    switch (step.kind) {
    case MemberStepKind::Load: load(instruction); return;
    case MemberStepKind::Compute: compute(instruction); return;
    case MemberStepKind::Slice: {
        const Cut cut = cutOf(instruction.after);
        kept().values[instruction.after] = keep(sharding::cut(m_device, value(instruction.before.front()), cut.dim,
                                                              cut.first(m_member), cut.length(m_member)),
                                                instruction.after, m_kept);
        return;
    }
    case MemberStepKind::Exchange: exchange(instruction); return;
    case MemberStepKind::SumVisits: sumVisits(instruction); return;
    case MemberStepKind::InputGrad: inputGrad(instruction); return;
    case MemberStepKind::SliceGrad: sliceGrad(instruction); return;
    case MemberStepKind::ExchangeGrad: exchangeGrad(instruction); return;
    case MemberStepKind::ReceivedSum:
    case MemberStepKind::ParameterSum: {
        const Tensor part = takeGradient(instruction.after);
        m_collectives.narrow(m_member) = step.kind == MemberStepKind::ReceivedSum && m_narrow;
        m_gradients[instruction.after] = m_collectives.allReduce(m_member, part);
        return;
    }
    case MemberStepKind::WeightGrad: weightGrad(instruction); return;
    case MemberStepKind::GatherFactors: gatherFactors(instruction); return;
    case MemberStepKind::FactorGrad: factorGrad(instruction); return;
    case MemberStepKind::StoreParameter: storeParameter(instruction); return;
    }
}

bool GroupMember::isHandOver(const ShardingInstruction& instruction) const
{
    return !isAlone() && instruction.computes()
           && operations()[static_cast<std::size_t>(m_stage.graph.node(instruction.tensor).operation)].name
                  == "hand_over";
}

Cut GroupMember::cutOf(const Property& property, bool exact) const
{
    return {property.relation.dim, shardLengths(m_theory, property.tensor, property.relation), exact};
}

std::vector<std::int64_t> GroupMember::firstOf(const Property& property) const
{
    std::vector<std::int64_t> first(m_stage.graph.node(property.tensor).shape.size(), 0);
    if (property.relation.kind == RelationKind::Gather)
        first[static_cast<std::size_t>(property.relation.dim)] = cutOf(property).first(m_member);
    return first;
}

Shape shapeOfPiece(const Theory& theory, const Property& property, int member)
{
    Shape shape = theory.graph().node(property.tensor).shape;
    if (property.relation.kind == RelationKind::Gather)
        shape[static_cast<std::size_t>(property.relation.dim)] =
            shardLengths(theory, property.tensor, property.relation)[static_cast<std::size_t>(member)];
    return shape;
}

std::vector<Tensor> GroupMember::operandsOf(const ShardingInstruction& instruction)
{
    std::vector<Tensor> operands;
    for (const Property& property : instruction.before)
        operands.push_back(value(property));
    return operands;
}

LocalPart GroupMember::partOf(const ShardingInstruction& instruction) const
{
    LocalPart part;
    // An operand that is added to a sum over members counts once: on the first member. The rule marks it with
    // Need::Once, even where the member has the tensor whole because other nodes use it so.
    for (std::size_t o = 0; o < instruction.before.size(); ++o)
        if (countsOnce(instruction, o) && m_member != 0)
            part.leftOut = static_cast<int>(o);
    const Node& node = m_stage.graph.node(instruction.tensor);
    if (operations()[static_cast<std::size_t>(node.operation)].name == "embedding")
        if (const Property& table = instruction.before[1];
            table.relation.kind == RelationKind::Gather && table.relation.dim == 0)
            part.firstRow = cutOf(table).first(m_member);
    if (operations()[static_cast<std::size_t>(node.operation)].work == Work::Attention)
        if (const Property& queries = instruction.before[0];
            queries.relation.kind == RelationKind::Gather && queries.relation.dim == 2)
            part.firstHead = static_cast<int>(cutOf(queries).first(m_member) / querySizeOf(node));
    // Where every member routes all tokens, one of them counts their visits.
    if (routesTokens(node) && instruction.after.relation.kind == RelationKind::Identity)
        part.countsVisits = m_member == 0;
    part.balanceOver = m_balanceOver;
    return part;
}

void GroupMember::resolve(const ShardingInstruction& instruction)
{
    const Node& node = m_stage.graph.node(instruction.tensor);
    std::vector<Shape> shapes;
    for (const Property& operand : instruction.before)
        shapes.push_back(shapeOf(operand));
    std::optional<NodeMaths> ofFactors;
    if (sharingRules()[static_cast<std::size_t>(instruction.rule)].factors()) {
        std::vector<Shape> whole = shapes;
        whole.front() = m_stage.graph.node(instruction.before.front().tensor).shape;
        ofFactors.emplace(node, std::move(whole), node.shape);
    }
    NodeMaths maths(node, std::move(shapes), shapeOf(instruction.after), partOf(instruction));
    const std::size_t shared = maths.sequenceGradient();
    m_maths.emplace(&instruction, Resolved{std::move(maths), std::move(ofFactors), m_sequenceGradient});
    m_sequenceGradient += shared;
    if (shared > 0)
        m_readLater.insert({instruction.before[1], instruction.before[2]});
}

/// What a node's attention shares with the other pieces of its sequences.
SequencePiece GroupMember::pieceFor(const ShardingInstruction& instruction)
{
    SequencePiece piece{.index = m_block.microbatch % m_pieces};
    const Resolved& of = mathsOf(instruction);
    if (of.maths.sequenceGradient() == 0)
        return piece;
    if (makesInputGrad(m_block.op))
        piece.gradients = m_block.sequenceGradient.subspan(of.sequenceGradient, of.maths.sequenceGradient());
    const std::int64_t each =
        static_cast<std::int64_t>(of.maths.sequenceGradient()) / (m_pieces - 1); // keys and values of a piece
    piece.earlier = m_device.make({piece.index, each});
    std::span<float> left = piece.earlier.data;
    for (int before = piece.index; before > 0; --before)
        for (const std::size_t operand : {1, 2}) {
            const Property& property = instruction.before[operand];
            const auto microbatch = static_cast<std::size_t>(m_block.microbatch - before);
            const KeptTensor& tensor = m_microbatches[microbatch].values.at(property);
            const std::size_t count = product(tensor.wide.shape.begin(), tensor.wide.shape.end());
            read(tensor, left.first(count));
            left = left.subspan(count);
        }
    return piece;
}

KeptTensor GroupMember::stored(const MemberParameter& parameter) const
{
    std::byte* const data = m_block.parameters.data + bytesOf(parameter.offset);
    const Shape shape = shapeOf(parameter.stored);
    if (m_narrow)
        return {{shape, {}, nullptr}, {reinterpret_cast<std::uint16_t*>(data), parameter.count}};
    return {{shape, {reinterpret_cast<float*>(data), parameter.count}, nullptr}};
}

void GroupMember::load(const ShardingInstruction& instruction)
{
    const Property& stored = instruction.after;
    Tensor tensor{shapeOf(stored), {}, nullptr};
    if (const auto parameter = m_parameterAt.find(stored); parameter != m_parameterAt.end()) {
        kept().values[stored] = this->stored(m_parameters[parameter->second]);
        return;
    }
    if (m_receivedLoad == stored && !isAlone()) {
        kept().values[stored] = keep(assembled(stored, m_edges.in, &StageEdge::output), stored, m_kept);
        return;
    }
    if (const std::size_t count = product(tensor.shape.begin(), tensor.shape.end()); count > 0) {
        if (m_block.keepsNothing)
            tensor = m_device.make(tensor.shape);
        else
            tensor.data = {reinterpret_cast<float*>(m_kept.take(count * sizeof(float))), count};
        m_device.operations().copy(m_data(stored, m_block.microbatch, count), tensor.data);
    }
    kept().values[stored] = {std::move(tensor)};
}

void GroupMember::compute(const ShardingInstruction& instruction)
{
    if (isHandOver(instruction))
        return;
    const std::vector<Tensor> operands = operandsOf(instruction);
    kept().values[instruction.after] =
        keep(mathsOf(instruction).maths.forward(m_device, pointersTo(operands), pieceFor(instruction)),
             instruction.after, m_kept);
}

void GroupMember::exchange(const ShardingInstruction& instruction)
{
    const Property &from = instruction.before.front(), &to = instruction.after;
    const Tensor mine = value(from);
    const bool exact = movesExactPieces(instruction, true);
    m_collectives.narrow(m_member) = isRounded(from.tensor);
    Tensor result;
    switch (instruction.action) {
    case Action::AllGather: result = m_collectives.allGather(m_member, mine, cutOf(from, exact)); break;
    case Action::AllReduce: result = m_collectives.allReduce(m_member, mine); break;
    case Action::ReduceScatter: result = m_collectives.reduceScatter(m_member, mine, cutOf(to, exact)); break;
    case Action::AllToAll: result = m_collectives.allToAll(m_member, mine, cutOf(from), cutOf(to)); break;
    case Action::Load:
    case Action::Slice: break;
    }
    kept().values[to] = keep(std::move(result), to, m_kept);
}

} // namespace pipewright::sharding
