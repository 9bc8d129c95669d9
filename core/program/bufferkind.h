// SPDX-License-Identifier: GPL-3.0-or-later
// The kinds of buffers, and what other files ask of a kind: one row per kind. The rows are a switch without a default,
// so a new kind does not compile before it has one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace pipewright {

enum class BufferKind : std::uint8_t {
    Parameters,                ///< persistent: weights of a stage
    Gradients,                 ///< persistent: weight-gradient sums of a stage
    OptimizerState,            ///< persistent
    Framework,                 ///< persistent: what a framework holds on a device besides its stages' states
    SavedUntilInputGrad,       ///< F -> I or B
    SavedUntilWeightGrad,      ///< F -> W or B
    SavedFromInputGrad,        ///< I -> W (inside B for a full backward)
    RecomputedUntilInputGrad,  ///< R -> I or B
    RecomputedUntilWeightGrad, ///< R -> W or B
    SequenceGradient,          ///< gradients of earlier pieces' keys and values: last piece's I or B -> first piece's
    Output,                    ///< F's result where it was made
    ReceivedOutput,            ///< F's result on a consumer's device
    Gradient,                  ///< gradient of a stage's input, where I or B made it
    ReceivedGradient,          ///< the same on the device of the stage it is for
    Workspace,                 ///< lives only while its instruction runs
    ReduceInbox,               ///< the peer's gradient sum, while the reduction runs
    WeightVersion,             ///< weights older than the stage's newest ones: U -> last reader
    PredictedWeights,          ///< made by a block from the newest weights: until its last reader
    SentWeights,               ///< a copy of what U made, for the other devices that work on the stage
    ReceivedWeights, ///< that copy on the other device, until it is put in place; with sharded states until it is
                     ///< passed on
    PartialGradient, ///< a stage's gradient sum so far, for the device with the next microbatch, or with U
    ReceivedPartialGradient,
    OffloadedUntilInputGrad, ///< in the host's memory: SavedUntilInputGrad, Offload -> the backward that read it back
    OffloadedUntilWeightGrad,
    ReloadedUntilInputGrad, ///< back on the device: Reload -> I or B
    ReloadedUntilWeightGrad,
    GatheredParameters, ///< all of a stage's parameters, which copies of the pipeline share out: until the last reader;
                        ///< between replicas CopyWeightsOut makes it from the own share, and transfers bring the
                        ///< others'
    WholeGradients,     ///< of a stage's gradients what other copies have a share in, and is still to be shared out
    KeptGradients,      ///< of their sum over replicas one's share: last sum -> end of the step
};
inline constexpr int bufferKindCount = 29;

/// What a buffer's bytes are for, as people see it in a peak of memory.
enum class BufferUse : std::uint8_t {
    State,     ///< lives from before the first step to the end of the run
    Saved,     ///< kept by a forward or an input gradient for the backwards to come
    Made,      ///< a block's result, until it was handed on
    Received,  ///< another device's result
    Weights,   ///< other weights of a stage than its newest
    Gathered,  ///< the whole of what copies of the pipeline share out
    Workspace, ///< of one instruction
    OnHost,    ///< in host memory, not in the device's memory
};

struct BufferTraits {
    BufferUse use;
    bool isWeights = false;                 ///< weights of a stage, of any version
    std::optional<BufferKind> receivedAs{}; ///< where a transfer, or a copy to or from the host's memory, brings it
};

/// Nothing for a number that is no kind.
constexpr std::optional<BufferTraits> rowOf(BufferKind kind)
{
    using Kind = BufferKind;
    using Use = BufferUse;
    switch (kind) {
    case Kind::Parameters: return BufferTraits{Use::State, true};
    case Kind::Gradients: return BufferTraits{Use::State};
    case Kind::OptimizerState: return BufferTraits{Use::State};
    case Kind::Framework: return BufferTraits{Use::State};
    case Kind::SavedUntilInputGrad: return BufferTraits{Use::Saved, false, Kind::OffloadedUntilInputGrad};
    case Kind::SavedUntilWeightGrad: return BufferTraits{Use::Saved, false, Kind::OffloadedUntilWeightGrad};
    case Kind::SavedFromInputGrad: return BufferTraits{Use::Saved};
    case Kind::RecomputedUntilInputGrad: return BufferTraits{Use::Saved};
    case Kind::RecomputedUntilWeightGrad: return BufferTraits{Use::Saved};
    case Kind::SequenceGradient: return BufferTraits{Use::Made};
    case Kind::Output: return BufferTraits{Use::Made, false, Kind::ReceivedOutput};
    case Kind::ReceivedOutput: return BufferTraits{Use::Received};
    case Kind::Gradient: return BufferTraits{Use::Made, false, Kind::ReceivedGradient};
    case Kind::ReceivedGradient: return BufferTraits{Use::Received};
    case Kind::Workspace: return BufferTraits{Use::Workspace};
    case Kind::ReduceInbox: return BufferTraits{Use::Received};
    case Kind::WeightVersion: return BufferTraits{Use::Weights, true};
    case Kind::PredictedWeights: return BufferTraits{Use::Weights, true};
    case Kind::SentWeights: return BufferTraits{Use::Made, true, Kind::ReceivedWeights};
    case Kind::ReceivedWeights: return BufferTraits{Use::Received, true, Kind::ReceivedWeights};
    case Kind::PartialGradient: return BufferTraits{Use::Made, false, Kind::ReceivedPartialGradient};
    case Kind::ReceivedPartialGradient: return BufferTraits{Use::Received};
    case Kind::OffloadedUntilInputGrad: return BufferTraits{Use::OnHost, false, Kind::ReloadedUntilInputGrad};
    case Kind::OffloadedUntilWeightGrad: return BufferTraits{Use::OnHost, false, Kind::ReloadedUntilWeightGrad};
    case Kind::ReloadedUntilInputGrad: return BufferTraits{Use::Saved};
    case Kind::ReloadedUntilWeightGrad: return BufferTraits{Use::Saved};
    case Kind::GatheredParameters: return BufferTraits{Use::Gathered, true};
    case Kind::WholeGradients: return BufferTraits{Use::Gathered};
    case Kind::KeptGradients: return BufferTraits{Use::Gathered};
    }
    return {};
}
static_assert(rowOf(static_cast<BufferKind>(bufferKindCount - 1)) && !rowOf(static_cast<BufferKind>(bufferKindCount)),
              "bufferKindCount is the number of kinds");

inline constexpr std::array<BufferTraits, bufferKindCount> bufferTraits = [] {
    std::array<BufferTraits, bufferKindCount> rows{};
    for (std::size_t kind = 0; kind < rows.size(); ++kind)
        rows[kind] = *rowOf(static_cast<BufferKind>(kind));
    return rows;
}();
constexpr const BufferTraits& traitsOf(BufferKind kind)
{
    return bufferTraits[static_cast<std::size_t>(kind)];
}

constexpr bool isPersistent(BufferKind kind)
{
    return traitsOf(kind).use == BufferUse::State;
}
/// In device memory: what F or R saved for the backward, or I for W.
constexpr bool isSavedActivation(BufferKind kind)
{
    return traitsOf(kind).use == BufferUse::Saved;
}
/// What transfers fill is there already: they do not begin it, and may bring parts of it.
constexpr bool isThereBeforeTransfers(BufferKind kind)
{
    return isPersistent(kind) || kind == BufferKind::GatheredParameters;
}
constexpr bool isInHostMemory(BufferKind kind)
{
    return traitsOf(kind).use == BufferUse::OnHost;
}
/// A copy of a stage's weights on its way between devices.
constexpr bool isPassedOnWeights(BufferKind kind)
{
    const BufferTraits& traits = traitsOf(kind);
    return traits.isWeights && (traits.use == BufferUse::Made || traits.use == BufferUse::Received);
}

} // namespace pipewright
