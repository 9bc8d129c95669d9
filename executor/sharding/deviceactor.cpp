// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/deviceactor.h"

#include "core/sharding/shards.h"

#include <algorithm>
#include <thread>

namespace pipewright::sharding {

namespace {

constexpr auto shortestSleep = std::chrono::milliseconds(1);

/// Whether the program chose to move pieces of exact sizes at this site.
bool pieceByPiece(const ShardingInstruction& instruction, bool forwards)
{
    return std::any_of(instruction.charges.begin(), instruction.charges.end(), [forwards](const Charge& charge) {
        return charge.communicates && (charge.pass == Pass::Forward) == forwards
               && (charge.collective == Collective::GroupedBroadcast || charge.collective == Collective::GroupedReduce);
    });
}

} // namespace

DeviceActor::DeviceActor(int device, MemberDevice& member, const Theory& theory, const LeafValues& leaves,
                         MemberCollectives& collectives, const ShardingRunOptions& options)
    : m_device(device), m_member(member), m_theory(theory), m_graph(theory.graph()), m_leafValues(leaves),
      m_collectives(collectives), m_emulate(options.emulateSpeed), m_check(options.check != nullptr)
{
}

void DeviceActor::begin()
{
    m_values.clear();
    m_gradients.clear();
    m_parameterGradients.clear();
    m_seen.clear();
}

void DeviceActor::startClock(Clock::time_point now)
{
    m_collectives.clock(m_device) = now;
}

void DeviceActor::finish()
{
    m_member.synchronize();
    if (m_emulate)
        std::this_thread::sleep_until(m_collectives.clock(m_device));
}

void DeviceActor::fetch(const Property& loss)
{
    const auto all = [this](const std::map<Property, Tensor>& from, std::map<Property, HostTensor>& to) {
        for (const auto& [property, tensor] : from)
            to[property] = m_member.get(tensor);
    };
    all(m_parameterGradients, m_fetched.parameterGradients);
    if (!m_check) {
        m_fetched.values[loss] = m_member.get(m_values.at(loss));
        return;
    }
    all(m_values, m_fetched.values);
    all(m_seen, m_fetched.gradients);
}

const HostTensor* DeviceActor::gradient(const Property& property) const
{
    const auto found = m_fetched.gradients.find(property);
    return found == m_fetched.gradients.end() ? nullptr : &found->second;
}

Cut DeviceActor::cutOf(const Property& property, bool pieceByPiece) const
{
    return {property.relation.dim, shardLengths(m_theory, property.tensor, property.relation), pieceByPiece};
}

std::int64_t DeviceActor::firstOf(const Property& property) const
{
    return cutOf(property).first(m_device);
}

std::int64_t DeviceActor::lengthOf(const Property& property) const
{
    return cutOf(property).length(m_device);
}

/// A whole one, or the device's own piece; brought there when it is first asked for.
const Tensor& DeviceActor::leaf(const Property& property)
{
    const auto found = m_leaves.find(property);
    if (found != m_leaves.end())
        return found->second;
    const HostTensor& whole = m_leafValues.at(property.tensor);
    const bool piece = property.relation.kind == RelationKind::Gather;
    return m_leaves[property] = m_member.put(
               piece ? sharding::cut(whole, property.relation.dim, firstOf(property), lengthOf(property)) : whole);
}

Shape DeviceActor::shapeOf(const Property& property) const
{
    Shape shape = m_graph.node(property.tensor).shape;
    if (property.relation.kind == RelationKind::Gather)
        shape[property.relation.dim] = lengthOf(property);
    return shape;
}

Operands DeviceActor::operandsOf(const ShardingInstruction& instruction) const
{
    Operands operands;
    for (const Property& property : instruction.before)
        operands.push_back(&m_values.at(property));
    return operands;
}

LocalPart DeviceActor::partOf(const ShardingInstruction& instruction) const
{
    LocalPart part;
    // What stands under a sum over devices counts once: rules write it as 1, and a tensor that others use as well as
    // whole.
    const Rule& rule = rules()[static_cast<std::size_t>(instruction.rule)];
    for (std::size_t o = 0; o < instruction.before.size(); ++o)
        if (rule.operands[o].need == Need::Once)
            part.countsOnce = m_device == 0;
    const Node& node = m_graph.node(instruction.tensor);
    if (operations()[node.operation].name == "embedding")
        if (const Property& table = instruction.before[1];
            table.relation.kind == RelationKind::Gather && table.relation.dim == 0)
            part.firstRow = firstOf(table);
    return part;
}

void DeviceActor::pass(double seconds)
{
    auto& clock = m_collectives.clock(m_device);
    clock += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    if (clock - Clock::now() > shortestSleep)
        std::this_thread::sleep_until(clock);
}

/// The device's share of the work of one direction.
void DeviceActor::passComputing(const ShardingInstruction& instruction, bool forwards)
{
    if (!m_emulate)
        return;
    double seconds = 0;
    for (const Charge& charge : instruction.charges) {
        if (charge.communicates || (charge.pass == Pass::Forward) != forwards)
            continue;
        const Line line = linesOf(charge, m_theory.machine())[m_device];
        double share = 0; // as it was rounded
        for (std::size_t o = 0; o <= instruction.before.size() && line.segment >= 0; ++o)
            if (const Property& property = o < instruction.before.size() ? instruction.before[o] : instruction.after;
                property.relation.kind == RelationKind::Gather) {
                const auto whole = m_graph.node(property.tensor).shape[property.relation.dim];
                share = static_cast<double>(lengthOf(property)) / static_cast<double>(whole);
            }
        seconds += line.constant + line.slope * share;
    }
    pass(seconds);
}

/// The collectives of one direction, which have set all clocks to that of the last device to arrive.
void DeviceActor::passMoving(const ShardingInstruction& instruction, bool forwards)
{
    if (!m_emulate)
        return;
    double cost = 0;
    for (const Charge& charge : instruction.charges)
        if (charge.communicates && (charge.pass == Pass::Forward) == forwards)
            cost += seconds(charge, m_theory.machine(), m_theory.ratios());
    pass(cost);
}

void DeviceActor::forward(const ShardingInstruction& instruction)
{
    const Property& to = instruction.after;
    if (instruction.computes()) {
        m_values[to] =
            sharding::forward(m_member, m_graph.node(to.tensor), operandsOf(instruction), partOf(instruction));
        passComputing(instruction, true);
        return;
    }
    if (instruction.action == Action::Load) {
        m_values[to] = leaf(to);
        return;
    }
    const Property& from = instruction.before.front();
    const Tensor& mine = m_values.at(from);
    const bool exact = pieceByPiece(instruction, true);
    switch (instruction.action) {
    case Action::AllGather: m_values[to] = m_collectives.allGather(m_device, mine, cutOf(from, exact)); break;
    case Action::AllReduce: m_values[to] = m_collectives.allReduce(m_device, mine); break;
    case Action::ReduceScatter: m_values[to] = m_collectives.reduceScatter(m_device, mine, cutOf(to, exact)); break;
    case Action::AllToAll: m_values[to] = m_collectives.allToAll(m_device, mine, cutOf(from), cutOf(to)); break;
    case Action::Slice: m_values[to] = cut(m_member, mine, to.relation.dim, firstOf(to), lengthOf(to)); break;
    case Action::Load: break;
    }
    passMoving(instruction, true);
}

/// Gradients are dual: of a loss that is a sum over devices it is 1 everywhere, of one that is whole it is a sum, of
/// which device 0 has all.
void DeviceActor::backwardStart(const Property& loss)
{
    HostTensor one{Shape{}};
    one.data.front() = loss.relation.kind == RelationKind::Reduce || m_device == 0 ? 1.0f : 0.0f;
    m_gradients[loss] = m_member.put(one);
}

bool DeviceActor::differentiable(int tensor) const
{
    return m_graph.node(tensor).leaf != Leaf::Input;
}

Tensor DeviceActor::takeGradient(const Property& property)
{
    const auto found = m_gradients.find(property);
    Tensor gradient; // zeros when nothing came back this way
    if (found == m_gradients.end()) {
        gradient = m_member.zeros(shapeOf(property));
    } else {
        gradient = std::move(found->second);
        m_gradients.erase(found);
    }
    if (m_check)
        m_seen[property] = gradient;
    return gradient;
}

void DeviceActor::addGradient(const Property& property, Tensor gradient)
{
    const auto [found, isNew] = m_gradients.try_emplace(property, std::move(gradient));
    if (!isNew)
        accumulate(m_member, found->second, gradient);
}

void DeviceActor::storeParameterGradient(const ShardingInstruction& load)
{
    const Property& stored = load.after;
    if (m_parameterGradients.contains(stored))
        return;
    Tensor gradient = takeGradient(stored);
    if (stored.relation.kind == RelationKind::Identity && !load.unreduced) {
        gradient = m_collectives.allReduce(m_device, gradient);
        passMoving(load, false);
    }
    m_parameterGradients[stored] = std::move(gradient);
}

/// Everyone gathers the rows of the input and of the result's gradient, and makes the whole weight gradient of them.
void DeviceActor::backwardWithFactors(const ShardingInstruction& instruction, const Tensor& grad)
{
    const bool exact = pieceByPiece(instruction, false);
    const Property& input = instruction.before[0];
    const Tensor rows = m_collectives.allGather(m_device, m_values.at(input), cutOf(input, exact));
    const Tensor grads = m_collectives.allGather(m_device, grad, cutOf(instruction.after, exact));
    passMoving(instruction, false);
    Operands operands = operandsOf(instruction);
    operands[0] = &rows;
    const Node& node = m_graph.node(instruction.tensor);
    std::vector<Tensor> found = sharding::backward(m_member, node, operands, m_member.make(node.shape), grads);
    for (std::size_t o = 1; o < found.size(); ++o)
        addGradient(instruction.before[o], std::move(found[o]));
}

void DeviceActor::backward(const ShardingInstruction& instruction)
{
    const Property& to = instruction.after;
    if (!instruction.computes() && instruction.action == Action::Load) {
        if (differentiable(to.tensor))
            storeParameterGradient(instruction);
        return;
    }
    if (!differentiable(to.tensor))
        return; // a slice of an input
    const Tensor grad = takeGradient(to);
    if (instruction.computes()) {
        const bool factors = rules()[static_cast<std::size_t>(instruction.rule)].factors();
        auto found = sharding::backward(m_member, m_graph.node(to.tensor), operandsOf(instruction), m_values.at(to),
                                        grad, partOf(instruction));
        for (std::size_t o = 0; o < found.size(); ++o)
            if (differentiable(instruction.before[o].tensor) && !(factors && o > 0)) {
                // What only device 0 counted has its gradient there, unless everyone keeps it whole for itself.
                const bool once = rules()[static_cast<std::size_t>(instruction.rule)].operands[o].need == Need::Once;
                if (once && instruction.kinds[o] != Need::Once && m_device != 0)
                    continue;
                addGradient(instruction.before[o], std::move(found[o]));
            }
        passComputing(instruction, false);
        if (factors)
            backwardWithFactors(instruction, grad);
        return;
    }
    const Property& from = instruction.before.front();
    const bool exact = pieceByPiece(instruction, false);
    switch (instruction.action) {
    case Action::AllGather: addGradient(from, m_collectives.reduceScatter(m_device, grad, cutOf(from, exact))); break;
    case Action::AllReduce: addGradient(from, m_collectives.allReduce(m_device, grad)); break;
    case Action::ReduceScatter: addGradient(from, m_collectives.allGather(m_device, grad, cutOf(to, exact))); break;
    case Action::AllToAll: addGradient(from, m_collectives.allToAll(m_device, grad, cutOf(to), cutOf(from))); break;
    case Action::Slice: {
        Tensor whole = m_member.zeros(m_graph.node(from.tensor).shape);
        paste(m_member, whole, grad, to.relation.dim, firstOf(to));
        addGradient(from, std::move(whole));
        break;
    }
    case Action::Load: break;
    }
    passMoving(instruction, false);
}

} // namespace pipewright::sharding
