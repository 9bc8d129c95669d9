// SPDX-License-Identifier: GPL-3.0-or-later
// One member's side of a stage that a group holds: it does the steps of a pass (core/sharding/memberpasses.h) on real
// tensors in uneven pieces, part by part, in the memory of the Program's buffers. The values of a forward are kept
// until the weight gradient; where the stage recomputes, R makes them again before it. Gradients live in the workspace,
// except those that the weight gradient needs.
//
// A microbatch may be a piece of its sequences. Its attention also reads the keys and values that the members kept of
// earlier pieces, and adds to their gradients; these are handed from the last piece to the first in a buffer.
//
// The same steps on a device that computes nothing (drydevice.h) tell how large the buffers must be. A stage may also
// stand alone, without a pipeline around it: then its received values are data, and the values that it would hand over
// are summed up.
#pragma once

#include "core/design/groupstages.h"
#include "executor/sharding/membercollectives.h"
#include "executor/sharding/nodemaths.h"
#include "executor/sharding/partmemory.h"
#include "executor/sharding/runnablegraph.h"

#include <functional>
#include <map>
#include <optional>
#include <set>

namespace pipewright::sharding {

/// A value that a member keeps: as fp32, or narrowed to bf16.
struct KeptTensor {
    Tensor wide; ///< without data where there is `narrow`
    std::span<std::uint16_t> narrow{};
};

/// The place of a parameter, or of the member's piece of it, among the member's parameters.
struct MemberParameter {
    Property stored;
    std::size_t offset = 0, count = 0; ///< floats
    bool isMatrix = false;             ///< weight decay is for matrices only
    bool isCorrection = false;         ///< of the experts' choice: its gradients are counts
};

/// Gets the values that a member makes, as soon as they exist: for checks against the program's properties.
class MemberObserver {
public:
    virtual ~MemberObserver() = default;
    virtual void value(MemberDevice& member, const Property& property, const Tensor& value) = 0;
    /// The gradient of a property, both before and after sums over members.
    virtual void gradient(MemberDevice& member, const Property& property, const Tensor& gradient) = 0;
};

/// Whether a stage stands alone.
inline bool standsAlone(const CopyEdges& edges)
{
    return edges.in.empty() && edges.out.empty();
}

/// The shape of a member's piece of a tensor.
Shape shapeOfPiece(const Theory& theory, const Property& property, int member);

class GroupMember {
public:
    /// `theory` is for the plan's ratios; all must outlive this. Microbatches are `pieces` of every sequence, one after
    /// another. `balanceOver`: as in LayerSettings. Throws Error for a program that loads a tensor twice.
    GroupMember(int member, MemberDevice& device, const Theory& theory, const SharedStage& stage,
                MemberCollectives& collectives, CopyEdges edges, int microbatches, int pieces, double balanceOver = 1);

    const std::vector<MemberParameter>& parameters() const { return m_parameters; }
    std::size_t parameterCount() const { return m_parameterCount; }
    /// Whether parameters, kept values and handed-over values are bf16; computing uses fp32 copies.
    bool isNarrow() const { return m_narrow; }
    Bytes bytesOf(std::size_t values) const { return static_cast<Bytes>(values) * (m_narrow ? 2 : 4); }
    /// The member's piece of a leaf: [first, first + length) of its dimension, or all of it.
    HostTensor pieceOf(const HostTensor& whole, const Property& stored) const;

    Shape shapeOf(const Property& property) const { return shapeOfPiece(m_theory, property, m_member); }
    /// Visits the contiguous runs of a parameter's piece: where each begins among the member's parameters, and its
    /// length.
    void eachRun(int tensor, const BoundaryPiece& piece,
                 const std::function<void(std::size_t first, std::size_t count)>& visit) const;

    /// The memory of a block, and its pieces that arrive and leave. These are in the order of the stage's edges, and
    /// per edge in the order of its pieces that concern this member.
    struct Block {
        Op op = Op::F;
        int microbatch = 0;
        Region parameters; ///< as they are stored
        std::span<float> gradients;
        Region saved, savedFromInputGrad, workspace;
        std::vector<std::pair<int, Region>> earlier; ///< by microbatch: `saved` of pieces that came before this one
        std::span<float> sequenceGradient;
        std::vector<Region> arrived, handed;
        std::span<float> loss;     ///< where F in the stage with the loss writes this member's share of it
        float lossWeight = 1;      ///< weight of this loss in the quantity that is differentiated
        bool keepsNothing = false; ///< for an F that R computes again
        bool handsEarly = false;   ///< for a B whose input gradient is sent before its weight gradients are made
    };
    /// Source of F's data: `count` values, the member's piece of a leaf, in memory that its device reads.
    using Data = std::function<std::span<const float>(const Property& stored, int microbatch, std::size_t count)>;
    void setData(Data data) { m_data = std::move(data); }
    /// The leaves that are data, with the relation in which the member has them.
    const std::vector<Property>& inputs() const { return m_inputs; }

    void begin(const Block& block);
    void part(int index);       ///< of the block that was begun
    void collective(int index); ///< with all other members, each on its own thread
    void end();

    /// Null: no observer. Must outlive this.
    void watch(MemberObserver* observer) { m_observer = observer; }

    Bytes workspaceUsed() const { return m_passing.highest(); }
    Bytes savedUsed() const { return m_kept.used(); }
    Bytes savedFromInputGradUsed() const { return m_keptGradients.used(); }
    Bytes sequenceGradientUsed() const { return static_cast<Bytes>(m_sequenceGradient * sizeof(float)); }

private:
    struct Kept { ///< of a microbatch
        std::map<Property, KeptTensor> values, gradients;
        Region region; ///< where the values lie
    };
    /// An instruction that computes.
    struct Resolved {
        NodeMaths maths;
        std::optional<NodeMaths> ofFactors; ///< on all rows
        std::size_t sequenceGradient;       ///< where its part of the buffer begins
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

    KeptTensor stored(const MemberParameter& parameter) const;
    void load(const ShardingInstruction& instruction);
    void compute(const ShardingInstruction& instruction);
    void exchange(const ShardingInstruction& instruction);
    void exchangeGrad(const ShardingInstruction& instruction);
    void sumVisits(const ShardingInstruction& instruction);
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
    SequencePiece pieceFor(const ShardingInstruction& instruction);
    const Resolved& mathsOf(const ShardingInstruction& instruction) const { return m_maths.at(&instruction); }
    void resolve(const ShardingInstruction& instruction);
    bool isRounded(int tensor) const { return m_narrow && !staysExact(m_stage.graph.node(tensor)); }
    bool hasRoundedGradient(const Property& property) const
    {
        return isRounded(property.tensor) && leafOf(property) != Leaf::Parameter;
    }
    void moveKept(int microbatch, Region to);
    KeptTensor keep(Tensor tensor, const Property& property, KeptMemory& memory);
    KeptTensor keepExact(Tensor tensor, KeptMemory& memory); ///< what is not empty
    void read(const KeptTensor& tensor, std::span<float> to);
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
    MemberPass m_full; ///< input gradient, then weight gradient
    int m_pieces;
    double m_balanceOver;
    std::map<const ShardingInstruction*, Resolved> m_maths;
    std::size_t m_sequenceGradient = 0;              ///< elements
    std::set<Property> m_readLater;                  ///< keys and values, which later pieces read
    std::vector<std::vector<Property>> m_lastReadBy; ///< per step of the forward: values that nothing reads behind it
    std::vector<MemberParameter> m_parameters;
    std::map<Property, std::size_t> m_parameterAt;
    std::size_t m_parameterCount = 0;
    std::vector<Property> m_inputs;
    std::optional<Property> m_receivedLoad; ///< how the stage's received input is loaded
    Data m_data;

    Block m_block;
    std::vector<std::size_t> m_collectivesOfPass;
    KeptMemory m_kept, m_keptGradients; // declared before the tensors, which give memory back to it
    PassingMemory m_passing;
    std::vector<Kept> m_microbatches;
    std::map<Property, Tensor> m_gradients; ///< of the present pass
    MemberObserver* m_observer = nullptr;
    Tensor m_factorRows, m_factorGrads, m_visits;
};

} // namespace pipewright::sharding
