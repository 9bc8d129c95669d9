// SPDX-License-Identifier: GPL-3.0-or-later
// The passes of a stage on memory as the model stores it. An fp32 stage is computed on the stored values, and so is a
// bf16 stage on a device that computes with bf16 (storedoperations.h). On other devices a bf16 stage is widened layer
// by layer, and the workload has to provide room for this: parameters, tensors and the values between layers become
// fp32 copies in the pass's workspace (core/model/passworkspace.h), and the fp32 maths of that one layer runs on
// them. Every result that goes to another operation is rounded to bf16 (roundingoperations.h), and kept tensors are
// stored in two bytes per value again. Layers do not know of bf16, and numbers are rounded at the same places either
// way. Gradients of parameters, their sums, norms and losses are fp32 in both.
#pragma once

#include "core/model/passworkspace.h"
#include "executor/stage/roundingoperations.h"
#include "executor/stage/stagemaths.h"
#include "executor/stage/storedoperations.h"

#include <array>
#include <memory>

namespace pipewright {

/// As StageInput, the values as they are stored.
struct StoredInput {
    std::span<const std::int32_t> tokens;
    std::span<const std::byte> activation;
    std::span<const std::int32_t> targets;
    std::span<float> loss{};
    std::span<const std::span<const std::byte>> skips{};
};

Bytes workspaceOf(const PassWorkspace& passes, Op op);

class StageSegments;

class StoredStage {
public:
    /// As StageMaths, in the workload's data type. Devices without bf16 arithmetic run a bf16 stage only if the
    /// workload says that it is widened.
    StoredStage(const Workload& workload, int first, int last, int microbatches, Recompute recompute = Recompute::None);

    bool isBf16() const { return m_isBf16; }
    const ParameterLayout& parameters() const { return m_parameters; }
    Bytes parameterBytes() const;
    Bytes activationBytes() const;
    /// Size of a saved, recomputed or sequence buffer of one microbatch.
    Bytes bytes(BufferKind kind) const;
    Bytes workspace(Op op) const;
    bool hasEmbedding() const { return m_hasEmbedding; }
    bool hasHead() const { return m_hasHead; }

    /// Parameters as they are stored: a copy, or narrowed.
    void store(const kernels::Operations& on, std::span<const float> values, std::span<std::byte> parameters) const;

    // The passes, as StageMaths has them. A backward that recomputes reads memory.input.
    void forward(std::span<const std::byte> parameters, const StoredInput& input, const StageMemory& memory,
                 std::span<std::byte> output) const;
    void recompute(std::span<const std::byte> parameters, const StoredInput& input, const StageMemory& memory) const;
    void inputGrad(std::span<const std::byte> parameters, const StageMemory& memory,
                   std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad, std::span<float> gradients,
                   std::span<const std::span<const std::byte>> skipGrads = {}) const;
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;
    void backward(std::span<const std::byte> parameters, const StageMemory& memory,
                  std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad, std::span<float> gradients,
                  std::span<const std::span<const std::byte>> skipGrads = {}) const;
    // After F on the host, for the same microbatch, as StageMaths has them.
    int correct(const StageMemory& memory) const;
    std::vector<float> probabilities(const StageMemory& memory) const;

private:
    enum Kept { UntilInputGrad, UntilWeightGrad, FromInputGrad }; ///< as Lifetime

    /// A tensor as it is stored: where in its buffer.
    struct Place {
        BufferKind buffer;
        Bytes at;
        std::int64_t elements;
        int width; ///< bytes of an element
    };
    struct Layer {
        StageMaths maths;
        std::size_t firstParameter, parameters;
        std::array<std::vector<Place>, 3> kept; ///< in the order of the fp32 copy
        std::vector<WorkspaceTensor> workspace;
        std::array<Bytes, 3> copies; ///< bytes of these
        Bytes sequenceGradient;      ///< where the layer's part of that buffer begins; it is fp32
    };
    /// The fp32 copies of one layer in a pass's workspace.
    struct Copies {
        std::span<float> parameters;
        StageMemory memory;
        std::vector<const float*> earlier; ///< of earlier pieces: their tensors kept until I
    };
    static bool isRecomputedKind(BufferKind kind)
    {
        return kind == BufferKind::RecomputedUntilInputGrad || kind == BufferKind::RecomputedUntilWeightGrad;
    }
    /// Calls look(maths, memory) with the layer that holds the head and the tensors that a forward kept.
    template<class Look>
    auto lookAtHead(const StageMemory& memory, Look look) const;
    Copies copiesOf(const Layer& layer, std::span<std::byte> workspace, const kernels::Operations& on,
                    bool withParameters, std::initializer_list<Kept> kept) const;
    /// For a piece of a sequence: takes room for the attention tensors of earlier pieces, and widens them.
    void addEarlier(const Layer& layer, const StageMemory& stored, Copies& copies) const;
    std::span<std::byte> placeIn(const StageMemory& stored, const Place& place) const;
    void widen(const Place& place, const StageMemory& stored, std::span<float> wide) const;
    void widen(const Layer& layer, Kept kept, const StageMemory& stored, const Copies& copies) const;
    /// Stores the tensors of one lifetime that this pass writes, unless they are stored already.
    void store(const Layer& layer, Kept kept, const StageMemory& stored, const Copies& copies, bool recomputed,
               const RoundingOperations& on) const;
    /// The fp32 copies of a pass: of tensors that are stored in bf16, and of those that are stored in fp32.
    struct Holdings {
        std::vector<HeldTwice> twice;
        std::vector<std::span<const float>> wide;
    };
    /// How a pass holds the tensors of one lifetime.
    struct Held {
        bool recomputed = false; ///< which tensors a pass stores: the recomputed ones or the others
        bool isStored = false;   ///< already stored when the pass begins
    };
    void addHeld(const Layer& layer, Kept kept, const StageMemory& stored, const Copies& copies, Held how,
                 Holdings& holdings) const;
    static void widenParameters(const Layer& layer, std::span<const std::byte> parameters, const Copies& copies);
    std::span<float> streamIn(std::span<std::byte> workspace) const;
    /// Whether a pass of a bf16 stage computes with the stored values; otherwise it is widened. Throws Error where
    /// there is no room to widen.
    bool computesAsStored(const kernels::Operations& on) const;
    void addLayer(const Workload& workload, const Workload& wide, int index, int microbatches);

    // In storedarithmetic.cpp: the passes of a device that computes with bf16.
    class Room;
    /// The memory of a layer as placeholder addresses. Without `keepsAll`, recomputed tensors are placed in `room`.
    StageMemory addressed(StoredOperations& on, const Layer& layer, const StageMemory& stored, Room& room,
                          std::initializer_list<Kept> kept, std::vector<const float*>& earlier, bool keepsAll) const;
    void forwardAsStored(std::span<const std::byte> parameters, const StoredInput& input, const StageMemory& memory,
                         std::span<std::byte> output, bool recomputes) const;
    void recomputeCoresAsStored(std::span<const std::byte> parameters, const StageMemory& memory) const;
    void inputGradAsStored(std::span<const std::byte> parameters, const StageMemory& memory,
                           std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad,
                           std::span<float> gradients, std::span<const std::span<const std::byte>> skipGrads) const;
    void weightGradAsStored(const StageMemory& memory, std::span<float> gradients) const;

    /// F and full R.
    void runForward(std::span<const std::byte> parameters, const StoredInput& input, const StageMemory& memory,
                    std::span<std::byte> output, bool recomputes) const;

    void recomputeCores(std::span<const std::byte> parameters, const StageMemory& memory) const;

    ParameterLayout m_parameters;
    Recompute m_recompute;
    bool m_isBf16, m_hasEmbedding = false, m_hasHead = false;
    bool m_isSegmented; ///< the backward recomputes: all passes are the segments'
    std::shared_ptr<const StageSegments>
        m_segments;                            ///< for a full backward; of a single layer that is not segmented none
    std::shared_ptr<const StageMaths> m_maths; ///< of all layers, where values are stored in fp32
    std::vector<Layer> m_layers;               ///< one by one, where they are stored in bf16
    bool m_isWidened = false;                  ///< there is room for fp32 copies
    std::int64_t m_activation = 0;             ///< elements
    std::array<Bytes, 5> m_bytes{};            ///< of the stored buffers, as bufferKinds lists them
    Bytes m_sequenceGradient = 0;
    PassWorkspace m_workspace;
};

} // namespace pipewright
