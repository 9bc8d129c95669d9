// SPDX-License-Identifier: GPL-3.0-or-later
// The kinds of tasks and of instructions, and what other files ask of a kind of task: one row per kind. The rows are a
// switch without a default, so a new kind does not compile before it has one; what follows from a row is derived below.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pipewright {

enum class TaskKind : std::uint8_t {
    Compute,
    Transfer,
    Reduce,     ///< gradients of a parameter that two stages share are summed
    ReplicaSum, ///< a stage's gradients are summed over replicas 0 and `replica`
    Update,
    CopyWeightsIn,   ///< weights that another device updated become this one's
    CopyWeightsOut,  ///< sharded states: the first copies of a stage's weights are made, to be passed from block to
                     ///< block; ZeRO 3 of replicas: the place for gathered parameters is made, with the device's own
                     ///< share
    Collective,      ///< of all members of a group, inside a block
    Offload,         ///< activations of a forward are copied to host memory
    Reload,          ///< they are copied back for the backward
    Gather,          ///< a stage's parameters come from the copies of the pipeline that share them out (UNSHARD)
    ReduceGradients, ///< its gradients are summed over these copies, each keeping its share (REDUCE_GRAD)
};
inline constexpr int taskKindCount = 12;

enum class InstructionKind : std::uint8_t {
    Compute,
    Send,
    Receive,
    Reduce,
    Update,
    Free,
    Collective,
    Offload,
    Reload,
    Gather,
    ReduceGradients,
};

struct TaskTraits {
    std::string_view key{}; ///< in traces; the numbers of a task tell kinds with the same key apart
    InstructionKind issuedAs = InstructionKind::Free; ///< by its device; the source of a transfer sends
    bool computes = false;                            ///< takes time of its device's own, and of the host to launch it
};

constexpr TaskTraits rowOf(TaskKind kind)
{
    switch (kind) {
    case TaskKind::Compute: return {"compute", InstructionKind::Compute, true};
    case TaskKind::Transfer: return {"transfer", InstructionKind::Send};
    case TaskKind::Reduce: return {"reduce", InstructionKind::Reduce};
    case TaskKind::ReplicaSum: return {"reduce", InstructionKind::Reduce};
    case TaskKind::Update: return {"update", InstructionKind::Update, true};
    case TaskKind::CopyWeightsIn: return {"update", InstructionKind::Update};
    case TaskKind::CopyWeightsOut: return {"update", InstructionKind::Update};
    case TaskKind::Collective: return {"collective", InstructionKind::Collective};
    case TaskKind::Offload: return {"offload", InstructionKind::Offload};
    case TaskKind::Reload: return {"reload", InstructionKind::Reload};
    case TaskKind::Gather: return {"gather", InstructionKind::Gather};
    case TaskKind::ReduceGradients: return {"reduce_gradients", InstructionKind::ReduceGradients};
    }
    return {}; // a number that is no kind
}
static_assert(!rowOf(static_cast<TaskKind>(taskKindCount - 1)).key.empty()
                  && rowOf(static_cast<TaskKind>(taskKindCount)).key.empty(),
              "taskKindCount is the number of kinds");

inline constexpr std::array<TaskKind, taskKindCount> allTaskKinds = [] {
    std::array<TaskKind, taskKindCount> kinds{};
    for (std::size_t kind = 0; kind < kinds.size(); ++kind)
        kinds[kind] = static_cast<TaskKind>(kind);
    return kinds;
}();
inline constexpr std::array<TaskTraits, taskKindCount> taskTraits = [] {
    std::array<TaskTraits, taskKindCount> rows;
    for (const TaskKind kind : allTaskKinds)
        rows[static_cast<std::size_t>(kind)] = rowOf(kind);
    return rows;
}();
constexpr const TaskTraits& traitsOf(TaskKind kind)
{
    return taskTraits[static_cast<std::size_t>(kind)];
}

/// A copy between a device and host memory, in parallel with compute.
constexpr bool isHostCopy(TaskKind kind)
{
    const InstructionKind issued = traitsOf(kind).issuedAs;
    return issued == InstructionKind::Offload || issued == InstructionKind::Reload;
}
/// Of one device with the copies of the pipeline that are only counted, in parallel with compute.
constexpr bool isCopyCollective(TaskKind kind)
{
    return kind == TaskKind::Gather || kind == TaskKind::ReduceGradients;
}
/// Moves values, in parallel with compute.
constexpr bool moves(TaskKind kind)
{
    return kind == TaskKind::Transfer || isHostCopy(kind) || isCopyCollective(kind);
}
constexpr bool isReduction(TaskKind kind)
{
    return traitsOf(kind).issuedAs == InstructionKind::Reduce;
}
/// Stands beside the blocks of its device: it moves values or sums them.
constexpr bool isBesideBlocks(TaskKind kind)
{
    return moves(kind) || isReduction(kind);
}
/// Brings values from one device to another.
constexpr bool joinsDevices(TaskKind kind)
{
    return kind == TaskKind::Transfer || isReduction(kind);
}
/// An update, or a task that passes on its weights: devices issue them as InstructionKind::Update.
constexpr bool isUpdate(TaskKind kind)
{
    return traitsOf(kind).issuedAs == InstructionKind::Update;
}
/// What a device runs one after the other.
constexpr bool isBlockOrUpdate(TaskKind kind)
{
    return kind == TaskKind::Compute || isUpdate(kind);
}
/// A block, or what the members of a group do together inside one.
constexpr bool isOfBlock(TaskKind kind)
{
    return kind == TaskKind::Compute || kind == TaskKind::Collective;
}

} // namespace pipewright
