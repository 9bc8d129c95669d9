// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/program.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

std::optional<Task> Task::stored(std::string_view key, Op op, int replica, int stage, int microbatch, int device,
                                 int peer)
{
    for (TaskKind kind : allTaskKinds) {
        if (key != traitsOf(kind).key || kind == TaskKind::Collective) // traces have none
            continue;
        if (isReduction(kind))
            kind = stage == microbatch ? TaskKind::ReplicaSum : TaskKind::Reduce;
        else if (isUpdate(kind))
            kind = peer < 0 ? TaskKind::Update : peer == device ? TaskKind::CopyWeightsOut : TaskKind::CopyWeightsIn;
        return Task(kind, op, replica, stage, microbatch, device, peer);
    }
    return std::nullopt;
}

Program::Program() = default;
Program::Program(const Program& other) = default;
Program::Program(Program&& other) noexcept = default;
Program& Program::operator=(const Program& other) = default;
Program& Program::operator=(Program&& other) noexcept = default;
Program::~Program() = default;
bool Program::operator==(const Program& other) const = default;

std::int64_t Program::computeCount() const
{
    return std::count_if(tasks.begin(), tasks.end(), [this](const Task& t) {
        return t.kind == TaskKind::Compute || (versioned() && t.kind == TaskKind::Update);
    });
}

std::int64_t Program::transferCount() const
{
    return std::count_if(tasks.begin(), tasks.end(), [](const Task& t) { return t.kind == TaskKind::Transfer; });
}

bool Program::bringsParameters(const Task& task) const
{
    return task.kind == TaskKind::Transfer && task.op != Op::U && sharesParametersOfReplicas()
           && placement(task.replica)[static_cast<std::size_t>(task.stage)] == task.destination();
}

std::string Program::label(TaskId id) const
{
    const Task& task = tasks[id];
    switch (task.kind) {
    case TaskKind::Compute:
        return hasMembers() ? fmt::format("{} part {}", toString(task.block()), partOfTask[id])
                            : toString(task.block());
    case TaskKind::Collective: return fmt::format("{} collective {}", toString(task.block()), partOfTask[id]);
    case TaskKind::Transfer:
        if (bringsParameters(task))
            return fmt::format("parameters of stage {} for {} from device {} to device {}", task.stage,
                               toString(task.block()), task.device, task.destination());
        return fmt::format("{} from device {} to device {}", toString(task.block()), task.device, task.destination());
    case TaskKind::Offload: return fmt::format("{} to host memory", toString(task.block()));
    case TaskKind::Reload: return fmt::format("{} from host memory", toString(task.block()));
    case TaskKind::Gather:
        return task.op == Op::U
                   ? fmt::format("gather updated parameters of stage {}", task.stage)
                   : fmt::format("gather parameters of stage {} for {}", task.stage, toString(task.block()));
    case TaskKind::ReduceGradients:
        return fmt::format("reduce gradients of stage {} after {}", task.stage, toString(task.block()));
    case TaskKind::ReplicaSum: return fmt::format("reduce stage {} over replicas", task.stage);
    case TaskKind::Reduce: return fmt::format("reduce shared parameter {}", task.stage);
    case TaskKind::CopyWeightsIn:
    case TaskKind::CopyWeightsOut: return fmt::format("weights of stage {} from device {}", task.stage, task.owner());
    case TaskKind::Update:
        if (versioned())
            return toString(task.block());
        return task.replica == 0 ? fmt::format("U{}", task.stage) : fmt::format("U{}/{}", task.stage, task.replica);
    }
    return {};
}

} // namespace pipewright
