// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/onedevice.h"

#include "executor/sharding/runnablegraph.h"

namespace pipewright::sharding {

OneDevice::OneDevice(MemberDevice& member, const TensorGraph& graph, const LeafValues& leaves, bool rounds,
                     std::span<const LeafValues> later, double balanceOver)
    : m_member(member), m_graph(graph), m_rounds(rounds),
      m_values(later.size() + 1, Tensors(static_cast<std::size_t>(graph.size())))
{
    if (Diagnostics found = whyNotRunnable(graph, static_cast<int>(m_values.size())); !found.empty())
        throw Error(std::move(found));
    for (int t = 0; t < graph.size(); ++t) {
        const Node& node = graph.node(t);
        if (node.leaf == Leaf::None) {
            m_maths.emplace(t, NodeMaths(graph, node, {.balanceOver = balanceOver}));
            continue;
        }
        for (std::size_t piece = 0; piece < m_values.size(); ++piece) {
            Tensor& value = m_values[piece][t];
            if (piece > 0 && node.leaf == Leaf::Parameter) {
                value = m_values.front()[t];
                continue;
            }
            value = member.put(piece == 0 ? leaves.at(t) : later[piece - 1].at(t));
            round(node, value);
        }
    }
}

void OneDevice::round(const Node& node, Tensor& tensor) const
{
    if (m_rounds && !staysExact(node) && tensor.elements() > 0)
        m_member.operations().run(kernels::RoundToBf16{tensor.data});
}

Operands OneDevice::operandsOf(const Node& node, int piece) const
{
    Operands operands;
    for (const int operand : node.operands)
        operands.push_back(&m_values[piece][operand]);
    return operands;
}

SequencePiece OneDevice::pieceOf(int tensor, int piece)
{
    SequencePiece of{.index = piece};
    const std::size_t all = m_maths.at(tensor).sequenceGradient();
    if (all == 0)
        return of;
    if (m_sequenceGradients.size() > 0)
        of.gradients = m_sequenceGradients[tensor].data;
    of.earlier = m_member.make({piece, static_cast<std::int64_t>(all / (m_values.size() - 1))});
    std::span<float> left = of.earlier.data;
    for (int before = 0; before < piece; ++before)
        for (const std::size_t operand : {1, 2}) { // keys and values
            const Tensor& kept = m_values[before][m_graph.node(tensor).operands[operand]];
            m_member.operations().copy(std::span<const float>(kept.data), left.first(kept.elements()));
            left = left.subspan(kept.elements());
        }
    return of;
}

Tensor OneDevice::forwardOf(int tensor, int piece)
{
    const Node& node = m_graph.node(tensor);
    const NodeMaths& maths = m_maths.at(tensor);
    const std::unique_ptr<kernels::Operations> others = m_operations ? m_operations(node, piece) : nullptr;
    if (!others)
        return maths.forward(m_member, operandsOf(node, piece), pieceOf(tensor, piece));
    m_member.workOn(m_member.stream(), *others);
    Tensor made = maths.forward(m_member, operandsOf(node, piece), pieceOf(tensor, piece));
    m_member.workOnOwn();
    return made;
}

void OneDevice::step(float weight)
{
    const int pieces = static_cast<int>(m_values.size());
    m_sequenceGradients.clear();
    for (int piece = 0; piece < pieces; ++piece)
        forward(piece);
    m_sequenceGradients.resize(static_cast<std::size_t>(m_graph.size()));
    for (const auto& [tensor, maths] : m_maths)
        m_sequenceGradients[tensor] = m_member.make({static_cast<std::int64_t>(maths.sequenceGradient())});
    m_gradients.assign(static_cast<std::size_t>(m_graph.size()), Tensor());
    for (int piece = pieces; piece-- > 0;)
        backward(piece, weight);
}

void OneDevice::forward(int piece)
{
    for (int t = 0; t < m_graph.size(); ++t)
        if (const Node& node = m_graph.node(t); node.leaf == Leaf::None) {
            Tensor& value = m_values[piece][t];
            value = forwardOf(t, piece);
            round(node, value);
        }
}

void OneDevice::backward(int piece, float weight)
{
    const bool isLast = piece + 1 == static_cast<int>(m_values.size());
    for (int t = 0; t < m_graph.size(); ++t)
        if (isLast || m_graph.node(t).leaf != Leaf::Parameter)
            m_gradients[t] = m_member.zeros(m_values[piece][t].shape);
    m_member.operations().run(kernels::Fill{m_gradients.back().data, weight});
    for (int t = m_graph.size() - 1; t >= 0; --t) {
        const Node& node = m_graph.node(t);
        if (node.leaf != Leaf::None)
            continue;
        round(node, m_gradients[t]);
        const NodeMaths& maths = m_maths.at(t);
        const Operands operands = operandsOf(node, piece);
        const auto found = maths.backward(m_member, operands, m_values[piece][t], m_gradients[t], {},
                                          {pieceOf(t, piece), maths.visits(m_member, operands)});
        for (std::size_t o = 0; o < found.size(); ++o)
            if (m_graph.node(node.operands[o]).leaf != Leaf::Input)
                accumulate(m_member, m_gradients[node.operands[o]], found[o]);
    }
}

SingleRun OneDevice::result()
{
    SingleRun run;
    for (const Tensors& values : m_values)
        run.loss += static_cast<double>(m_member.get(values.back()).data.front());
    for (int t = 0; t < m_graph.size(); ++t)
        if (m_graph.node(t).leaf == Leaf::Parameter)
            run.gradients[t] = m_member.get(m_gradients[t]);
    return run;
}

} // namespace pipewright::sharding
