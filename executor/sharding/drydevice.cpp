// SPDX-License-Identifier: GPL-3.0-or-later
// Every member of every stage does F, I, W and then F, B once, with R before them where the stage recomputes, alone:
// O(instructions · members) allocations.
#include "executor/sharding/drydevice.h"

#include "executor/sharding/groupmember.h"

#include <cstdint>

namespace pipewright::sharding {

namespace {

class DryStream final : public Stream {
public:
    bool wait(Event&) override { return true; }
    bool synchronize() override { return true; }
    void interrupt() override {}
    void resume() override {}
};

class DryOperations final : public kernels::Operations {
public:
    bool keepsProbabilities() const override { return kernels::hostOperations().keepsProbabilities(); }

private:
    void issue(kernels::Operation, const void*, std::size_t) const override {}
};

class DryDevice final : public Device {
public:
    std::string name() const override { return "dry run"; }
    Capabilities capabilities() const override { return {.hostAddressable = true}; }
    std::unique_ptr<Allocation> allocate(Bytes) override
    {
        throw Error("dry run", "a member's tensor lies outside of its block's buffers",
                    "this is a fault of the program: please report it with the design");
    }
    Bytes heldBytes() const override { return 0; }
    std::unique_ptr<Stream> createStream() override { return std::make_unique<DryStream>(); }
    std::unique_ptr<Event> createEvent(Stream&) override { return nullptr; }
    std::unique_ptr<kernels::Operations> createOperations(Stream&) override
    {
        return std::make_unique<DryOperations>();
    }
    void write(Stream&, Region, const void*) override {}
    void read(Stream&, Region, void*) override {}
    void fetch(Stream&, Region, const Device&, Region) override {}
    bool reaches(const Device&) const override { return true; }
};

/// Addresses that nothing is read from or written to, far apart so that no two regions touch.
Region nowhere(int number)
{
    constexpr std::uintptr_t apart = std::uintptr_t{1} << 44;
    return {reinterpret_cast<std::byte*>(apart * static_cast<std::uintptr_t>(1 + number)),
            static_cast<Bytes>(apart / 2)};
}

class Measurement {
public:
    Measurement(int member, const GroupStages& stages, std::size_t copy, const Theory& theory, bool recomputes,
                bool apart)
        : m_recomputes(recomputes), m_device(m_dry),
          m_collectives(createLoneCollectives(m_device, theory.machine().devices(), apart)),
          m_stage(stages.stages[copy]), m_edges(stages, static_cast<int>(copy)), m_index(member),
          m_member(member, m_device, theory, stages.plans[copy], *m_collectives, m_edges, 1)
    {
        for (const Node& node : stages.plans[copy].graph.nodes())
            if (node.leaf == Leaf::Input)
                m_data.emplace(node.name, HostTensor(node.shape));
        m_member.setData([this](const Node& leaf, int) -> const HostTensor& { return m_data.at(leaf.name); });
    }

    StageCosts bytes(int stateValues)
    {
        StageCosts found;
        found.parameters = m_member.bytesOf(m_member.parameterCount());
        found.gradients = static_cast<Bytes>(m_member.parameterCount() * sizeof(float));
        found.optimizerState = found.gradients * (stateValues + (m_member.isNarrow() ? 1 : 0)); // and master copies
        found.workspaceForward = run(Op::F);
        (m_recomputes ? found.recomputedUntilWeightGrad : found.savedUntilWeightGrad) = recompute(found);
        found.workspaceInputGrad = run(Op::I);
        found.savedFromInputGrad = m_member.savedFromInputGradUsed();
        found.workspaceWeightGrad = run(Op::W);
        run(Op::F);
        recompute(found);
        found.workspaceBackward = run(Op::B);
        return found;
    }

private:
    /// What the backward finds kept.
    Bytes recompute(StageCosts& found)
    {
        if (m_recomputes)
            found.workspaceRecompute = run(Op::R);
        return m_member.savedUsed();
    }

    /// Workspace that was used.
    Bytes run(Op op)
    {
        GroupMember::Block block;
        block.op = op;
        block.parameters = nowhere(0);
        block.gradients = {reinterpret_cast<float*>(block.parameters.data), m_member.parameterCount()};
        block.saved = nowhere(1);
        block.savedFromInputGrad = nowhere(2);
        block.workspace = nowhere(3);
        block.keepsNothing = op == Op::F && m_recomputes;
        const auto add = [&](const std::vector<BoundaryPiece>& pieces, bool arriving, std::vector<Region>& regions) {
            for (const BoundaryPiece& piece : pieces)
                if ((arriving ? piece.to : piece.from) == m_index)
                    regions.push_back({nowhere(4).data, piece.bytes});
        };
        for (const StageEdge* edge : m_edges.in) {
            if (op == Op::F || op == Op::R)
                add(edge->output, true, block.arrived);
            if (makesInputGrad(op))
                add(edge->gradients, false, block.handed);
        }
        for (const StageEdge* edge : m_edges.out) {
            if (op == Op::F)
                add(edge->output, false, block.handed);
            if (makesInputGrad(op))
                add(edge->gradients, true, block.arrived);
        }
        m_member.begin(block);
        const auto& parts = m_stage.passes[indexOf(op)].parts;
        for (std::size_t part = 0; part < parts.size(); ++part) {
            m_member.part(static_cast<int>(part));
            if (part + 1 < parts.size())
                m_member.collective(static_cast<int>(part));
        }
        m_member.end();
        return m_member.workspaceUsed();
    }

    bool m_recomputes;
    DryDevice m_dry;
    MemberDevice m_device;
    std::unique_ptr<MemberCollectives> m_collectives;
    const GroupStage& m_stage;
    CopyEdges m_edges;
    int m_index;
    std::map<std::string, HostTensor> m_data;
    GroupMember m_member;
};

} // namespace

void measureMembers(GroupStages& stages, int stateValues, const std::vector<Recompute>& recompute, bool apart)
{
    for (std::size_t copy = 0; copy < stages.stages.size(); ++copy) {
        const SharedStage& plan = stages.plans[copy];
        const std::size_t s = copy % static_cast<std::size_t>(stages.perReplica);
        if (Diagnostics why = whyNotRunnable(plan.graph); !why.empty())
            throw Error(std::move(why));
        const Theory theory(plan.graph, plan.machine, plan.plan.ratios);
        for (int m = 0; m < plan.machine.devices(); ++m) {
            const bool recomputes = s < recompute.size() && recompute[s] == Recompute::Full;
            Measurement measurement(m, stages, copy, theory, recomputes, apart);
            StageCosts& member = stages.stages[copy].members[static_cast<std::size_t>(m)];
            const Bytes output = member.output;
            member = measurement.bytes(stateValues);
            member.output = output;
        }
    }
}

} // namespace pipewright::sharding
