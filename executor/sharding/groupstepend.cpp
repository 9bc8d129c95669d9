// SPDX-License-Identifier: GPL-3.0-or-later
// The work of members at the end of a step: gradient sums with other stages and replicas, and updates. O(parameters of
// the member) each.
#include "core/program/memberstepend.h"
#include "executor/sharding/trainedmember.h"
#include "executor/training/blockmemory.h"

namespace pipewright::sharding {

/// Updates this replica's share, or copies in the parameters that another replica updated.
void GroupTraining::update(const TaskContext& context)
{
    const kernels::Operations& on = *context.operations;
    Member& member = memberAt(context.task->stage, context.task->replica, context.device);
    if (context.task->kind == TaskKind::PutInPlace) {
        for (const BufferView& view : context.reads)
            on.run(kernels::copyOf<std::byte>(
                bytes(view.region), member.storedOf(shareOf(member.work.parameterCount(), view.description.replica))));
        return;
    }
    if (m_model->learns()) {
        const std::span<float> masters = member.mastersOfShare();
        member.optimizer.update(on, context.step + 1, masters,
                                member.gradients.subspan(member.begin(), member.updated()), member.state);
        if (member.work.isNarrow()) {
            const std::span<std::byte> stored = member.storedOf(member.share);
            on.run(kernels::Narrow{masters, {reinterpret_cast<std::uint16_t*>(stored.data()), masters.size()}});
        }
    }
    for (const BufferView& view : context.writes)
        on.run(kernels::copyOf<std::byte>(member.storedOf(member.share), bytes(view.region)));
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
            move(member.gradients.subspan(static_cast<std::size_t>(share->begin / each),
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
                                            move(member.gradients.subspan(first, count), packed.first(count));
                                            packed = packed.subspan(count);
                                        });
    }
}

} // namespace pipewright::sharding
