// SPDX-License-Identifier: GPL-3.0-or-later
// The work of members at the end of a step: gradient sums with other stages and replicas, and updates. O(parameters of
// the member) each.
#include "core/program/memberstepend.h"
#include "executor/sharding/trainedmember.h"
#include "executor/training/blockmemory.h"

namespace pipewright::sharding {

void GroupTraining::update(const TaskContext& context)
{
    Member& member = memberAt(context.task->stage, context.task->replica, context.device);
    if (m_program->versioned())
        m_versions.update(context, member.copy, isBf16(), member.optimizer);
    else if (m_model->learns())
        updateShare(context, member.copy, member.work.parameterCount(), member.optimizer);
}

void GroupTraining::reduce(const TaskContext& context, Region, Region, bool)
{
    const Task& task = *context.task;
    const int part = m_program->partOfTask[context.id], copy = m_stages.copyOf(task.stage, task.replica);
    const SharedSum& sum = m_stages.sums[static_cast<std::size_t>(part / 2)];
    const bool adds = part % 2 == 1, isRoot = copy == sum.root, toRoot = adds == isRoot;
    Member& member = memberAt(task.stage, task.replica, context.device);
    const int own = context.device - m_stages.firstOf(m_stages.deviceOfCopy[static_cast<std::size_t>(copy)]);
    const auto views = adds ? context.reads : context.writes;
    const auto move = [&](std::span<float> here, std::span<float> packed) {
        if (!adds)
            context.operations->copy(here, packed);
        else if (sum.replaces)
            context.operations->copy(packed, here);
        else
            context.operations->run(kernels::Add{here, packed});
    };
    if (const auto share = partOfSum(*m_program, m_stages, sum, toRoot, own)) {
        constexpr std::int64_t each = sizeof(float);
        for (const BufferView& view : views) // one view, or none when the part is empty
            move(member.copy.gradients.subspan(static_cast<std::size_t>(share->begin / each),
                                               static_cast<std::size_t>(share->count() / each)),
                 floats(view.region));
        return;
    }
    std::size_t view = 0;
    for (int peer = 0; peer < m_stages.membersOf(isRoot ? sum.other : sum.root); ++peer) {
        const int from = adds ? peer : own, to = adds ? own : peer;
        if (sum.bytes(toRoot, from, to) == 0)
            continue;
        std::span<float> packed = floats(views[view++].region);
        for (const SharedSum::Parameter& parameter : sum.parameters)
            for (const BoundaryPiece& piece : toRoot ? parameter.toRoot : parameter.toOther)
                if (piece.from == from && piece.to == to)
                    member.work.eachRun(isRoot ? parameter.ofRoot : parameter.ofOther, piece,
                                        [&](std::size_t first, std::size_t count) {
                                            move(member.copy.gradients.subspan(first, count), packed.first(count));
                                            packed = packed.subspan(count);
                                        });
    }
}

} // namespace pipewright::sharding
