// SPDX-License-Identifier: GPL-3.0-or-later
// What replicas of a stage do together: sums of gradients, which stages with a shared parameter make too, and their
// shares of the optimizer's state. O(parameters of the stage) each.
#include "core/base/diagnostic.h"
#include "executor/training/blockmemory.h"
#include "executor/training/trainingwork.h"

#include <fmt/format.h>

namespace pipewright {

ReplicaShare TrainingWork::shareOf(int stage, int replica) const
{
    const auto count = static_cast<std::int64_t>(at(stage).maths.parameters().count());
    return m_program->shardedOptimizer ? shareOfReplica(count, replica, replicas()) : ReplicaShare{0, count};
}

std::span<const float> TrainingWork::wholeMasters(int stage) const
{
    std::vector<float>& whole = m_wholeMasters[stage];
    whole.clear();
    for (int replica = 0; replica < replicas(); ++replica) {
        const std::span<const float> found =
            onHost(copyOf(stage, replica).parameters, stage, replica, BufferKind::OptimizerState);
        const auto count = static_cast<std::size_t>(shareOf(stage, replica).count());
        if (found.size() < count)
            return {}; // not fetched
        whole.insert(whole.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return whole;
}

/// Updates the own share, or puts in place what another replica updated.
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
    sumTiedGradients(on, stage.maths.parameters(), copy.gradients);
    const ReplicaShare share = shareOf(task.stage, task.replica);
    const auto begin = static_cast<std::size_t>(share.begin), count = static_cast<std::size_t>(share.count());
    const std::span<float> parameters =
        stage.maths.isWidened() ? copy.parameters : copy.parameters.subspan(begin, count);
    stage.optimizer.part(begin, count)
        .update(on, context.step + 1, parameters, copy.gradients.subspan(begin, count), copy.state);
    const std::span<std::byte> stored = storedOf(task.replica);
    if (stage.maths.isWidened())
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
    context.operations->run(kernels::Add{floats(own), floats(theirs)});
    if (both)
        context.operations->copy(floats(own), floats(theirs));
}

} // namespace pipewright
