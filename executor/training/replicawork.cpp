// SPDX-License-Identifier: GPL-3.0-or-later
// What the replicas of a stage do together: the sums of gradients (also those over stages with a shared parameter) and,
// with a sharded optimizer, the update by shares. O(parameters of the stage) each.
#include "core/base/diagnostic.h"
#include "executor/training/blockmemory.h"
#include "executor/training/trainingwork.h"

#include <fmt/format.h>

namespace pipewright {

ReplicaShare TrainingWork::shareOf(int stage, int replica) const
{
    const auto count = static_cast<std::int64_t>(at(stage).maths.parameters().count());
    return updatedBy(*m_program, count, replica);
}

std::span<const float> TrainingWork::ofShares(int stage, BufferKind kind) const
{
    std::vector<float>& whole = m_ofShares[{stage, kind}];
    whole.resize(at(stage).maths.parameters().count());
    const bool gradients = kind == BufferKind::Gradients; // a replica has room for all of them
    for (int replica = 0; replica < replicas(); ++replica) {
        const StageCopy& copy = copyOf(stage, replica);
        const ReplicaShare share = shareOf(stage, replica);
        const std::span<const float> found = onHost(gradients ? copy.gradients : copy.parameters, stage, replica, kind);
        const auto count = static_cast<std::size_t>(share.count()),
                   first = static_cast<std::size_t>(gradients ? share.begin : 0);
        if (found.size() < first + count)
            return {}; // not fetched
        std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(first), count, whole.begin() + share.begin);
    }
    return whole;
}

void TrainingWork::findLastWeightGrads()
{
    m_sumsTied.assign(m_program->tasks.size(), false);
    std::map<std::pair<int, int>, TaskId> last;
    for (TaskId t = 0; t < m_program->tasks.size(); ++t)
        if (const Task& task = m_program->tasks[t]; task.kind == TaskKind::Compute && makesWeightGrad(task.op))
            last[{task.stage, task.replica}] = t;
    for (const auto& [copy, task] : last)
        m_sumsTied[task] = !m_program->versioned();
}

/// Updates this replica's share, or copies in the parameters that another replica updated.
void TrainingWork::updateShare(const TaskContext& context, StageCopy& copy) const
{
    const Task& task = *context.task;
    const Stage& stage = at(task.stage);
    const std::size_t width = copy.stored.size() / stage.maths.parameters().count();
    const auto storedOf = [&](int replica) {
        const ReplicaShare share = shareOf(task.stage, replica);
        return copy.stored.subspan(static_cast<std::size_t>(share.begin) * width,
                                   static_cast<std::size_t>(share.count()) * width);
    };
    const kernels::Operations& on = *context.operations;
    if (task.kind == TaskKind::PutInPlace) {
        for (const BufferView& view : context.reads)
            on.run(kernels::copyOf<std::byte>(bytes(view.region), storedOf(view.description.replica)));
        return;
    }
    const ReplicaShare share = shareOf(task.stage, task.replica);
    const auto begin = static_cast<std::size_t>(share.begin), count = static_cast<std::size_t>(share.count());
    const std::span<float> parameters = stage.maths.isBf16() ? copy.parameters : copy.parameters.subspan(begin, count);
    stage.optimizer.part(begin, count)
        .update(on, context.step + 1, parameters, copy.gradients.subspan(begin, count), copy.state);
    const std::span<std::byte> stored = storedOf(task.replica);
    if (stage.maths.isBf16())
        stage.maths.store(on, parameters, stored);
    for (const BufferView& view : context.writes)
        on.run(kernels::copyOf<std::byte>(stored, bytes(view.region)));
}

Region TrainingWork::sharedPart(const Task& reduce, const BufferView& gradients)
{
    if (reduce.kind == TaskKind::ReplicaSum)
        return gradients.region;
    const ParameterLayout& layout = at(gradients.description.stage).maths.parameters();
    const bool isRoot = gradients.description.stage == reduce.stage;
    const Parameter* matrix = isRoot ? layout.embeddingMatrix() : layout.headMatrix();
    if (!matrix)
        throw Error(fmt::format("stage {}", gradients.description.stage), "holds no shared parameter",
                    "the dataflow must name the stages of embedding and head");
    std::byte* data = gradients.region.data; // null on another process's device
    return {data ? data + matrix->offset * sizeof(float) : nullptr,
            static_cast<Bytes>(matrix->count() * sizeof(float))};
}

void TrainingWork::reduce(const TaskContext& context, Region own, Region theirs, bool both)
{
    if (own.bytes > 0)
        context.operations->run(kernels::Add{floats(own), floats(theirs)});
    if (both)
        context.operations->copy(floats(own), floats(theirs));
}

} // namespace pipewright
