// SPDX-License-Identifier: GPL-3.0-or-later
// Every member of every stage runs F, I, W and then F, B once, alone, with R before them where the stage recomputes:
// O(instructions · members) allocations.
#include "executor/sharding/drydevice.h"

#include "core/design/groupcosts.h"
#include "executor/sharding/groupmember.h"

#include <algorithm>
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
    void issue(kernels::Operation, const void*, std::size_t, kernels::StoredOperands) const override {}
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

/// Addresses that are never read or written, so far apart that no two regions touch.
Region nowhere(int number)
{
    constexpr std::uintptr_t apart = std::uintptr_t{1} << 44;
    return {reinterpret_cast<std::byte*>(apart * static_cast<std::uintptr_t>(1 + number)),
            static_cast<Bytes>(apart / 2)};
}

class Measurement {
public:
    Measurement(int member, const GroupStages& stages, std::size_t copy, const Theory& theory, bool recomputes,
                ImaginedOthers others)
        : m_recomputes(recomputes), m_pieces(stages.sequencePieces), m_device(m_dry),
          m_collectives(createLoneCollectives(m_device, theory.machine().devices(), std::move(others))),
          m_stage(stages.stages[copy]), m_edges(stages, static_cast<int>(copy)), m_index(member),
          m_member(member, m_device, theory, stages.plans[copy], *m_collectives, m_edges, m_pieces, m_pieces)
    {
        m_member.setData([](const Property&, int, std::size_t count) {
            return std::span(reinterpret_cast<const float*>(nowhere(5).data), count);
        });
    }

    StageCosts bytes(int stateValues)
    {
        StageCosts found;
        found.parameters = m_member.bytesOf(m_member.parameterCount());
        found.gradients = static_cast<Bytes>(m_member.parameterCount() * sizeof(float));
        found.optimizerState = found.gradients * (stateValues + (m_member.isNarrow() ? 1 : 0)); // and master copies
        found.sequenceGradient = m_member.sequenceGradientUsed();
        found.workspaceForward = forward();
        found.savedUntilWeightGrad = m_member.savedUsed();
        recompute(found);
        found.workspaceInputGrad = run(Op::I);
        found.savedFromInputGrad = m_member.savedFromInputGradUsed();
        found.workspaceWeightGrad = run(Op::W);
        forward();
        recompute(found);
        found.workspaceBackward = run(Op::B);
        return found;
    }

private:
    /// Of all pieces of a sequence. Returns the workspace of the last one, which needs most.
    Bytes forward()
    {
        Bytes workspace = 0;
        for (int piece = 0; piece < m_pieces; ++piece)
            workspace = run(Op::F, piece);
        return workspace;
    }

    /// Runs R where the stage recomputes.
    void recompute(StageCosts& found)
    {
        if (!m_recomputes)
            return;
        found.workspaceRecompute = run(Op::R);
        found.recomputedUntilWeightGrad = m_member.savedUsed();
    }

    Bytes run(Op op) { return run(op, m_pieces - 1); }
    /// Runs one pass and returns the workspace that it used.
    Bytes run(Op op, int piece)
    {
        GroupMember::Block block;
        block.op = op;
        block.microbatch = piece;
        block.parameters = nowhere(0);
        block.gradients = {reinterpret_cast<float*>(block.parameters.data), m_member.parameterCount()};
        block.saved = nowhere(1);
        block.savedFromInputGrad = nowhere(2);
        block.workspace = nowhere(3);
        block.loss = {reinterpret_cast<float*>(nowhere(6).data), 1};
        block.sequenceGradient = {reinterpret_cast<float*>(nowhere(7).data),
                                  static_cast<std::size_t>(m_member.sequenceGradientUsed()) / sizeof(float)};
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
    int m_pieces;
    DryDevice m_dry;
    MemberDevice m_device;
    std::unique_ptr<MemberCollectives> m_collectives;
    const GroupStage& m_stage;
    CopyEdges m_edges;
    int m_index;
    GroupMember m_member;
};

} // namespace

void takeFullestMembers(const GroupStages& stages, Costs& costs)
{
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
        const auto needs = [](const StageCosts& member) {
            return member.parameters + member.gradients + member.optimizerState + member.savedUntilInputGrad
                   + member.savedUntilWeightGrad + member.recomputedUntilInputGrad + member.recomputedUntilWeightGrad;
        };
        std::vector<StageCosts> members; // of all replicas
        for (std::size_t copy = s; copy < stages.stages.size(); copy += costs.stages.size())
            members.insert(members.end(), stages.stages[copy].members.begin(), stages.stages[copy].members.end());
        const StageCosts& fullest =
            *std::max_element(members.begin(), members.end(),
                              [&](const StageCosts& a, const StageCosts& b) { return needs(a) < needs(b); });
        for (const auto bytes : bytesOnMembers)
            costs.stages[s].*bytes = fullest.*bytes;
    }
}

namespace {

ImaginedOthers othersOf(int member, const GroupStages& stages, int group, const MemberPlaces& places)
{
    if (places.communicators)
        return {.way = stages.membersOfDevice[static_cast<std::size_t>(group)] > 1 ? ImaginedOthers::Way::Communicator
                                                                                   : ImaginedOthers::Way::Memory};
    if (places.apart)
        return {.way = ImaginedOthers::Way::Apart};
    if (!places.backend)
        return {};
    std::vector<int> numbers;
    for (int m = 0; m < stages.membersOfDevice[static_cast<std::size_t>(group)]; ++m)
        numbers.push_back(stages.firstOf(group) + m);
    if (numbers.size() > 1 && places.backend->hasCommunicators(numbers))
        return {.way = ImaginedOthers::Way::Communicator};
    ImaginedOthers others;
    const Device& own = places.backend->device(stages.firstOf(group) + member);
    for (const int number : numbers)
        others.reached.push_back(own.reaches(places.backend->device(number)));
    return others;
}

} // namespace

void measureMembers(GroupStages& stages, int stateValues, const std::vector<Recompute>& recompute,
                    const MemberPlaces& places)
{
    for (std::size_t copy = 0; copy < stages.stages.size(); ++copy) {
        const SharedStage& plan = stages.plans[copy];
        const std::size_t s = copy % static_cast<std::size_t>(stages.perReplica);
        if (Diagnostics why = whyNotRunnable(plan.graph, stages.sequencePieces); !why.empty())
            throw Error(std::move(why));
        const Theory theory(plan.graph, plan.machine, plan.plan.ratios);
        for (int m = 0; m < plan.machine.devices(); ++m) {
            const bool recomputes = s < recompute.size() && recompute[s] == Recompute::Block;
            Measurement measurement(m, stages, copy, theory, recomputes,
                                    othersOf(m, stages, stages.deviceOfCopy[copy], places));
            StageCosts& member = stages.stages[copy].members[static_cast<std::size_t>(m)];
            const Bytes output = member.output;
            member = measurement.bytes(stateValues);
            member.output = output;
        }
    }
}

} // namespace pipewright::sharding
