// SPDX-License-Identifier: GPL-3.0-or-later
// One member's side of a stage that a group holds: it does the steps of a pass (core/sharding/memberpasses.h) on real
// tensors in uneven pieces, part by part, in memory that the Program's buffers give it. What a forward makes is kept
// until the weight gradient, or where the stage recomputes made again by R before it; gradients pass through the
// workspace, but for those that the weight gradient needs.
//
// The same steps on a device that computes nothing (drydevice.h) say how large the buffers must be. A stage may stand
// alone, without a pipeline around it: what it would receive is data then, and what it would hand on is summed up.
#pragma once

#include "core/design/groupstages.h"
#include "executor/sharding/membercollectives.h"
#include "executor/sharding/nodemaths.h"
#include "executor/sharding/partmemory.h"

#include <functional>
#include <map>
#include <optional>
#include <set>

namespace pipewright::sharding {

/// A value that a member keeps: as it is computed with, or narrowed to bf16.
struct KeptTensor {
    Tensor wide; ///< without data where there is `narrow`
    std::span<std::uint16_t> narrow{};
};

/// Where a parameter that a member has, or a piece of it, lies among the member's parameters.
struct MemberParameter {
    Property stored;
    std::size_t offset = 0, count = 0; ///< floats
    std::size_t rank = 0;
    bool isMatrix() const { return rank > 1; }
};

/// Sees what a member makes, when it is there: for checks of what a program says of it.
class MemberObserver {
public:
    virtual ~MemberObserver() = default;
    virtual void value(MemberDevice& member, const Property& property, const Tensor& value) = 0;
    /// What came back to a property, before sums over members and behind them.
    virtual void gradient(MemberDevice& member, const Property& property, const Tensor& gradient) = 0;
};

/// Whether a stage stands alone.
inline bool standsAlone(const CopyEdges& edges)
{
    return edges.in.empty() && edges.out.empty();
}

/// Of what a member has of a tensor.
Shape shapeOfPiece(const Theory& theory, const Property& property, int member);

class GroupMember {
public:
    /// `theory` is for the plan's ratios; all must outlive this. Throws Error for a program that loads a tensor twice.
    GroupMember(int member, MemberDevice& device, const Theory& theory, const SharedStage& stage,
                MemberCollectives& collectives, CopyEdges edges, int microbatches);

    const std::vector<MemberParameter>& parameters() const { return m_parameters; }
    std::size_t parameterCount() const { return m_parameterCount; }
    /// Whether parameters, and what is kept and handed over, are bf16: with fp32 copies for what is computed.
    bool isNarrow() const { return m_narrow; }
    Bytes bytesOf(std::size_t values) const { return static_cast<Bytes>(values) * (m_narrow ? 2 : 4); }
    /// What the member has of a leaf: [first, first + length) of its dimension, or all of it.
    HostTensor pieceOf(const HostTensor& whole, const Property& stored) const;

    Shape shapeOf(const Property& property) const { return shapeOfPiece(m_theory, property, m_member); }
    /// How much of a parameter's piece lies in one run, and where each run begins among the member's parameters.
    void eachRun(int tensor, const BoundaryPiece& piece,
                 const std::function<void(std::size_t first, std::size_t count)>& visit) const;

    /// Where a block works, and what comes and goes at its ends. Pieces are in the order of the stage's edges and of
    /// their pieces that concern this member.
    struct Block {
        Op op = Op::F;
        int microbatch = 0;
        Region parameters; ///< as they are stored
        std::span<float> gradients;
        Region saved, savedFromInputGrad, workspace;
        std::vector<Region> arrived, handed;
        std::span<float> loss;     ///< where an F in the stage with the loss puts what this member has to add to it
        float lossWeight = 1;      ///< of the loss, in what the gradients are of
        bool keepsNothing = false; ///< an F, which R does again
        bool handsEarly = false;   ///< a B, whose input gradient leaves before its weight gradients are made
    };
    /// F takes its data from here: so many values, the member's piece of a leaf, in memory that its device reads.
    using Data = std::function<std::span<const float>(const Property& stored, int microbatch, std::size_t count)>;
    void setData(Data data) { m_data = std::move(data); }
    /// The leaves that are data, as the member has them.
    const std::vector<Property>& inputs() const { return m_inputs; }

    void begin(const Block& block);
    void part(int index);       ///< of the block that was begun
    void collective(int index); ///< with all other members, each on its own thread
    void end();

    /// Null: nobody looks on. Must outlive this.
    void watch(MemberObserver* observer) { m_observer = observer; }

    Bytes workspaceUsed() const { return m_passing.highest(); }
    Bytes savedUsed() const { return m_kept.used(); }
    Bytes savedFromInputGradUsed() const { return m_keptGradients.used(); }

private:
    struct Kept { ///< of a microbatch
        std::map<Property, KeptTensor> values, gradients;
        Region region; ///< where the values lie
    };
    const ShardingInstruction& at(const MemberStep& step) const
    {
        return m_stage.plan.program.instructions[static_cast<std::size_t>(step.instruction)];
    }
    Kept& kept() { return m_microbatches[static_cast<std::size_t>(m_block.microbatch)]; }
    Tensor value(const Property& property) { return widened(kept().values.at(property)); }
    bool isAlone() const { return standsAlone(m_edges); }
    void dropValuesAfter(std::size_t step);
    const MemberPass& passOf(Op op) const;
    void run(std::size_t from, std::size_t to);
    void run(const MemberStep& step);

    void handBack();

    void load(const ShardingInstruction& instruction);
    void compute(const ShardingInstruction& instruction);
    void exchange(const ShardingInstruction& instruction);
    void exchangeGrad(const ShardingInstruction& instruction);
    void inputGrad(const ShardingInstruction& instruction);
    void weightGrad(const ShardingInstruction& instruction);
    void gatherFactors(const ShardingInstruction& instruction);
    void factorGrad(const ShardingInstruction& instruction);
    void sliceGrad(const ShardingInstruction& instruction);
    void storeParameter(const ShardingInstruction& instruction);
    void addOperandGradients(const ShardingInstruction& instruction, std::vector<Tensor> found, bool ofParameters);

    bool isHandOver(const ShardingInstruction& instruction) const;
    Leaf leafOf(const Property& property) const { return m_stage.graph.node(property.tensor).leaf; }
    Cut cutOf(const Property& property, bool exact = false) const;
    std::vector<std::int64_t> firstOf(const Property& property) const;
    std::vector<Tensor> operandsOf(const ShardingInstruction& instruction);
    LocalPart partOf(const ShardingInstruction& instruction) const;
    bool isRounded(int tensor) const { return m_narrow && !staysExact(m_stage.graph.node(tensor)); }
    bool hasRoundedGradient(const Property& property) const
    {
        return isRounded(property.tensor) && leafOf(property) != Leaf::Parameter;
    }
    void moveKept(Region to);
    KeptTensor keep(Tensor tensor, const Property& property, KeptMemory& memory);
    Tensor widened(const KeptTensor& tensor);
    Tensor widened(Shape shape, std::span<const std::uint16_t> values);
    void narrow(const Tensor& tensor, std::span<std::uint16_t> values);
    Tensor takeGradient(const Property& property);
    void addGradient(const Property& property, Tensor gradient);
    using Pieces = std::vector<BoundaryPiece> StageEdge::*;
    Tensor assembled(const Property& property, const std::vector<const StageEdge*>& edges, Pieces pieces);
    void handOut(const Tensor& tensor, const Property& property, const std::vector<const StageEdge*>& edges,
                 Pieces pieces);

    int m_member;
    MemberDevice& m_device;
    const Theory& m_theory;
    const SharedStage& m_stage;
    MemberCollectives& m_collectives;
    bool m_narrow;
    CopyEdges m_edges;
    MemberPasses m_passes;
    MemberPass m_full;                               ///< input gradient, then weight gradient
    std::vector<std::vector<Property>> m_lastReadBy; ///< per step of the forward: values that none behind it reads
    std::vector<MemberParameter> m_parameters;
    std::map<Property, std::size_t> m_parameterAt;
    std::size_t m_parameterCount = 0;
    std::vector<Property> m_inputs;
    std::optional<Property> m_receivedLoad; ///< of what comes from the stage before
    Data m_data;

    Block m_block;
    std::vector<std::size_t> m_collectivesOfPass;
    KeptMemory m_kept, m_keptGradients; // longer than the tensors, which give it back
    PassingMemory m_passing;
    std::vector<Kept> m_microbatches;
    std::map<Property, Tensor> m_gradients; ///< of the present pass
    MemberObserver* m_observer = nullptr;
    Tensor m_factorRows, m_factorGrads;
};

} // namespace pipewright::sharding
