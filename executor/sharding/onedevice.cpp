// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/onedevice.h"

#include "executor/sharding/runnablegraph.h"

namespace pipewright::sharding {

OneDevice::OneDevice(MemberDevice& member, const TensorGraph& graph, const LeafValues& leaves, bool rounds)
    : m_member(member), m_graph(graph), m_rounds(rounds), m_values(static_cast<std::size_t>(graph.size()))
{
    if (Diagnostics found = whyNotRunnable(graph); !found.empty())
        throw Error(std::move(found));
    for (int t = 0; t < graph.size(); ++t)
        if (graph.node(t).leaf == Leaf::None) {
            m_maths.emplace(t, NodeMaths(graph, graph.node(t)));
        } else {
            m_values[t] = member.put(leaves.at(t));
            round(graph.node(t), m_values[t]);
        }
}

void OneDevice::round(const Node& node, Tensor& tensor) const
{
    if (m_rounds && !staysExact(node) && tensor.elements() > 0)
        m_member.operations().run(kernels::RoundToBf16{tensor.data});
}

Operands OneDevice::operandsOf(const Node& node) const
{
    Operands operands;
    for (const int operand : node.operands)
        operands.push_back(&m_values[operand]);
    return operands;
}

Tensor OneDevice::forwardOf(int tensor)
{
    const Node& node = m_graph.node(tensor);
    const NodeMaths& maths = m_maths.at(tensor);
    const std::unique_ptr<kernels::Operations> others = m_operations ? m_operations(node) : nullptr;
    if (!others)
        return maths.forward(m_member, operandsOf(node));
    m_member.workOn(m_member.stream(), *others);
    Tensor made = maths.forward(m_member, operandsOf(node));
    m_member.workOnOwn();
    return made;
}

void OneDevice::step(float weight)
{
    for (int t = 0; t < m_graph.size(); ++t)
        if (const Node& node = m_graph.node(t); node.leaf == Leaf::None) {
            m_values[t] = forwardOf(t);
            round(node, m_values[t]);
        }
    m_gradients.clear();
    for (const Tensor& value : m_values)
        m_gradients.push_back(m_member.zeros(value.shape));
    m_member.operations().run(kernels::Fill{m_gradients.back().data, weight});
    for (int t = m_graph.size() - 1; t >= 0; --t) {
        const Node& node = m_graph.node(t);
        if (node.leaf != Leaf::None)
            continue;
        const auto at = static_cast<std::size_t>(t);
        round(node, m_gradients[at]);
        const auto found = m_maths.at(t).backward(m_member, operandsOf(node), m_values[at], m_gradients[at]);
        for (std::size_t o = 0; o < found.size(); ++o)
            if (m_graph.node(node.operands[o]).leaf != Leaf::Input)
                accumulate(m_member, m_gradients[node.operands[o]], found[o]);
    }
}

SingleRun OneDevice::result()
{
    SingleRun run;
    run.loss = static_cast<double>(m_member.get(m_values.back()).data.front());
    for (int t = 0; t < m_graph.size(); ++t)
        if (m_graph.node(t).leaf == Leaf::Parameter)
            run.gradients[t] = m_member.get(m_gradients[t]);
    return run;
}

} // namespace pipewright::sharding
