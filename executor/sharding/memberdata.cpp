// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/memberdata.h"

namespace pipewright::sharding {

namespace {

bool hasLoss(const SharedStage& stage, const CopyEdges& edges)
{
    if (standsAlone(edges))
        return true;
    const ShardingInstruction& last = stage.plan.program.instructions.back();
    return operations()[static_cast<std::size_t>(stage.graph.node(last.tensor).operation)].name != "hand_over";
}

std::size_t elements(const Shape& shape)
{
    return product(shape.begin(), shape.end());
}

} // namespace

Bytes MemberData::bytes(const Theory& theory, const SharedStage& stage, const CopyEdges& edges, int member,
                        int microbatches)
{
    std::size_t values = hasLoss(stage, edges) ? 1 : 0;
    for (const ShardingInstruction& instruction : stage.plan.program.instructions) {
        if (instruction.computes() || instruction.action != Action::Load)
            continue;
        const Leaf leaf = stage.graph.node(instruction.after.tensor).leaf;
        if (leaf == Leaf::Input || (leaf == Leaf::Received && standsAlone(edges)))
            values += elements(shapeOfPiece(theory, instruction.after, member));
    }
    return static_cast<Bytes>(values * sizeof(float)) * microbatches;
}

MemberData::MemberData(const GroupMember& work, const SharedStage& stage, const CopyEdges& edges, MemberDevice& device,
                       int microbatches)
    : m_work(work), m_stage(stage), m_device(device), m_microbatches(microbatches), m_hasLoss(hasLoss(stage, edges))
{
    const auto all = static_cast<std::size_t>(microbatches);
    std::size_t values = m_hasLoss ? all : 0;
    for (const Property& input : work.inputs())
        values += all * elements(work.shapeOf(input));
    std::span<float> left;
    if (device.device().capabilities().hostAddressable) {
        m_onHost.resize(values);
        left = m_onHost;
    } else if (values > 0) {
        m_onDevice = device.device().allocate(static_cast<Bytes>(values * sizeof(float)));
        left = {reinterpret_cast<float*>(m_onDevice->region().data), values};
    }
    const auto take = [&left](std::size_t count) {
        const std::span<float> taken = left.first(count);
        left = left.subspan(count);
        return taken;
    };
    for (const Property& input : work.inputs())
        m_pieces[input] = take(all * elements(work.shapeOf(input)));
    m_losses = take(m_hasLoss ? all : 0);
}

void MemberData::write(const std::function<const HostTensor&(const Node& leaf, int microbatch)>& whole)
{
    for (const auto& [stored, pieces] : m_pieces) {
        std::vector<float> values;
        for (int m = 0; m < m_microbatches; ++m) {
            const HostTensor piece = m_work.pieceOf(whole(m_stage.graph.node(stored.tensor), m), stored);
            values.insert(values.end(), piece.data.begin(), piece.data.end());
        }
        m_device.device().write(m_device.stream(), regionOf(pieces), values.data());
    }
    if (m_hasLoss)
        m_device.operations().run(kernels::Fill{m_losses, 0});
}

std::span<const float> MemberData::piece(const Property& stored, int microbatch) const
{
    const std::span<const float> all = m_pieces.at(stored);
    const std::size_t each = all.size() / static_cast<std::size_t>(m_microbatches);
    return all.subspan(static_cast<std::size_t>(microbatch) * each, each);
}

std::span<float> MemberData::loss(int microbatch)
{
    return m_hasLoss ? m_losses.subspan(static_cast<std::size_t>(microbatch), 1) : m_losses;
}

std::vector<float> MemberData::losses() const
{
    std::vector<float> found(m_losses.size());
    if (m_hasLoss)
        m_device.device().read(m_device.stream(), regionOf(m_losses), found.data());
    return found;
}

} // namespace pipewright::sharding
