// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/programmember.h"

#include <thread>

namespace pipewright::sharding {

namespace {

constexpr auto shortestSleep = std::chrono::milliseconds(1);

/// Of the input gradient and then the weight gradient.
PartSeconds backwardSeconds(const MemberPasses& passes, const SharedStage& stage)
{
    MemberPass both = passes.inputGrad;
    both.insert(both.end(), passes.weightGrad.begin(), passes.weightGrad.end());
    return partSeconds(both, stage.plan.program, stage.machine, stage.plan.ratios);
}

} // namespace

ProgramMember::ProgramMember(int member, MemberDevice& device, const Theory& theory, const SharedStage& stage,
                             const LeafValues& leaves, MemberCollectives& collectives,
                             const ShardingRunOptions& options)
    : m_member(member), m_device(device), m_collectives(collectives), m_emulate(options.emulateSpeed),
      m_check(options.check != nullptr), m_work(member, device, theory, stage, collectives)
{
    const MemberPasses passes = memberPasses(stage.plan.program, stage.graph);
    m_forward = partSeconds(passes.forward, stage.plan.program, stage.machine, stage.plan.ratios);
    m_backward = backwardSeconds(passes, stage);
    m_work.setData([&stage, &leaves](const Node& leaf, int) -> const HostTensor& {
        return leaves.at(stage.graph.find(leaf.name));
    });
    HostTensor parameters(Shape{static_cast<std::int64_t>(m_work.parameterCount())});
    for (const MemberParameter& parameter : m_work.parameters()) {
        const HostTensor piece = m_work.pieceOf(leaves.at(parameter.stored.tensor), parameter.stored);
        std::copy(piece.data.begin(), piece.data.end(),
                  parameters.data.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
    }
    m_parameters = device.put(parameters);
    m_gradients = device.make(parameters.shape);
}

void ProgramMember::startClock(Clock::time_point now)
{
    m_collectives.clock(m_member) = now;
}

void ProgramMember::step()
{
    if (m_gradients.elements() > 0)
        m_device.operations().run(kernels::Fill{m_gradients.data, 0});
    run(Op::F, m_forward);
    run(Op::B, m_backward);
}

void ProgramMember::finish()
{
    m_device.synchronize();
    if (m_emulate)
        std::this_thread::sleep_until(m_collectives.clock(m_member));
}

void ProgramMember::run(Op op, const PartSeconds& seconds)
{
    GroupMember::Block block;
    block.op = op;
    block.parameters = {reinterpret_cast<std::byte*>(m_parameters.data.data()),
                        static_cast<Bytes>(m_parameters.data.size_bytes())};
    block.gradients = m_gradients.data;
    m_work.begin(block);
    for (std::size_t part = 0; part < seconds.parts.size(); ++part) {
        m_work.part(static_cast<int>(part));
        pass(seconds.parts[part][static_cast<std::size_t>(m_member)]);
        if (part == seconds.collectives.size())
            break;
        m_work.collective(static_cast<int>(part));
        pass(seconds.collectives[part]);
    }
    m_work.end();
}

void ProgramMember::pass(double seconds)
{
    if (!m_emulate)
        return;
    auto& clock = m_collectives.clock(m_member);
    clock += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    if (clock - Clock::now() > shortestSleep)
        std::this_thread::sleep_until(clock);
}

void ProgramMember::fetch(const Property& loss)
{
    for (const MemberParameter& parameter : m_work.parameters())
        m_parameterGradients[parameter.stored] = m_device.get(
            {m_work.shapeOf(parameter.stored), m_gradients.data.subspan(parameter.offset, parameter.count), nullptr});
    if (const Tensor* received = m_work.receivedGradient())
        m_parameterGradients[*m_work.received()] = m_device.get(*received);
    if (!m_check) {
        m_values[loss] = m_device.get(m_work.valueOf(loss));
        return;
    }
    for (const auto& [property, tensor] : m_work.values())
        m_values[property] = m_device.get(tensor.wide);
    for (const auto& [property, tensor] : m_work.seenGradients())
        m_seen[property] = m_device.get(tensor);
}

const HostTensor* ProgramMember::gradient(const Property& property) const
{
    const auto found = m_seen.find(property);
    return found == m_seen.end() ? nullptr : &found->second;
}

} // namespace pipewright::sharding
