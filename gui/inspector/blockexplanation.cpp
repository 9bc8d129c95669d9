// SPDX-License-Identifier: GPL-3.0-or-later
// Walks back along the latest dependency of each start. O(chain length) after finding the block.
#include "gui/inspector/blockexplanation.h"

#include "core/predict/criticalpath.h"
#include "core/program/replicasums.h"
#include "gui/document/document.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>

namespace pipewright {

namespace {

/// The compute task behind a dependency: the task itself, or the producer of transferred data.
TaskId producer(const Program& program, TaskId task)
{
    while (task != none && moves(program.tasks[task].kind))
        task = program.afterData[task];
    return task;
}

QString tr(const char* text)
{
    return QCoreApplication::translate("Inspector", text);
}

QString label(const Program& program, TaskId task)
{
    return QString::fromStdString(program.label(task));
}

/// "F0.3 on GPU 1".
QString labelOnDevice(const Design& design, const Program& program, TaskId task)
{
    return tr("%1 on %2").arg(label(program, task), deviceLabel(design, program.tasks[task].device));
}

/// The time between the block's start and the moment when its device was free and its inputs were ready.
Nanoseconds hostGapBefore(const Prediction& prediction, TaskId task, const LatestInput& cause)
{
    const TaskId onDevice = prediction.program.afterOnDevice[task];
    const Nanoseconds free = onDevice == none ? 0 : prediction.timeline.end[onDevice];
    return std::max<Nanoseconds>(0, prediction.timeline.start[task] - std::max(free, cause.ready));
}

QString sentence(const Design& design, const Prediction& prediction, const BlockAnswers& answers,
                 const LatestInput& cause)
{
    const Program& program = prediction.program;
    const TaskId onDevice = program.afterOnDevice[answers.task];
    const Nanoseconds host = hostGapBefore(prediction, answers.task, cause), waits = answers.idleBefore - host;
    if (host > 0 && waits == 0)
        return tr("%1 idle: the host is not ready, though all inputs are there.").arg(durationText(host));
    if (answers.idleBefore == 0) {
        if (onDevice == none)
            return tr("It starts with the step; nothing is idle before it.");
        const Nanoseconds spare = prediction.timeline.end[onDevice] - cause.ready;
        QString text = tr("Nothing is idle: it starts as soon as %1 ends.").arg(label(program, onDevice));
        if (spare > 0 && cause.after != none)
            text += tr(" Its input had been ready for %1.").arg(durationText(spare));
        return text;
    }
    if (cause.pin)
        return tr("%1 idle because the block is pinned to start no earlier than %2.")
            .arg(durationText(waits), durationText(cause.ready));
    if (cause.after != none && isCopyCollective(program.tasks[cause.after].kind))
        return tr("%1 waiting for its device to %2.").arg(durationText(waits), label(program, cause.after));
    const TaskId source = producer(program, cause.after);
    if (source == none)
        return tr("%1 idle before it.").arg(durationText(answers.idleBefore));
    QString text = tr("%1 waiting for %2").arg(durationText(waits), labelOnDevice(design, program, source));
    const Nanoseconds onItsWay = cause.ready - prediction.timeline.end[source];
    if (onItsWay > 0)
        text += tr(", of which %1 is the transfer").arg(durationText(std::min(onItsWay, waits)));
    text += QLatin1Char('.');
    if (host > 0)
        text += tr(" The host needs another %1 before the block.").arg(durationText(host));
    return text + chainBehind(design, program, prediction.timeline, program.tasks[answers.task].block());
}

/// Frees follow the last use of a buffer, so those between the block and the next compute belong to the block and to
/// transfers that it waited for.
Bytes freedAfter(const Program& program, TaskId task)
{
    const auto& instructions = program.devices[program.tasks[task].device].instructions;
    const auto isTask = [task](const Instruction& i) { return i.kind == InstructionKind::Compute && i.task == task; };
    auto at = std::find_if(instructions.begin(), instructions.end(), isTask);
    Bytes freed = 0;
    if (at == instructions.end())
        return freed;
    for (++at; at != instructions.end() && at->kind != InstructionKind::Compute; ++at) {
        if (at->kind == InstructionKind::Free && at->buffer != none)
            freed += program.buffers.bytes(at->buffer);
    }
    return freed;
}

/// What a block saves for later blocks of its stage and microbatch. O(buffers).
void findKept(const Program& program, BlockAnswers& answers)
{
    const Task& task = program.tasks[answers.task];
    const Block block = task.block();
    const auto blockOf = [&block](Op op) { return Block{op, block.stage, block.microbatch, block.replica}; };
    const Block last = blockOf(taskOf(program, blockOf(Op::W)) != none ? Op::W : Op::B);
    const Block input = blockOf(taskOf(program, blockOf(Op::I)) != none ? Op::I : Op::B);
    struct Saved {
        Op by;
        BufferKind kind;
        const Block& until;
    };
    const Saved saved[] = {{Op::F, BufferKind::SavedUntilInputGrad, input},
                           {Op::F, BufferKind::SavedUntilWeightGrad, last},
                           {Op::R, BufferKind::RecomputedUntilInputGrad, input},
                           {Op::R, BufferKind::RecomputedUntilWeightGrad, last},
                           {Op::I, BufferKind::SavedFromInputGrad, last}};
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
        const BufferKind kind = program.buffers.kind(static_cast<BufferId>(i));
        for (const Saved& each : saved) {
            if (each.kind != kind || each.by != block.op)
                continue;
            const Buffer buffer = program.buffers[i];
            if (buffer.stage != block.stage || buffer.microbatch != block.microbatch || buffer.replica != block.replica
                || buffer.device != task.device || buffer.bytes == 0)
                continue;
            answers.kept += buffer.bytes;
            if (!answers.keptUntil || each.until == last)
                answers.keptUntil = each.until;
        }
    }
}

} // namespace

TaskId taskOf(const Program& program, const Block& block)
{
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        const bool runs = task.kind == TaskKind::Compute || (isUpdate(task.kind) && block.op == Op::U);
        if (runs && task.block() == block)
            return t;
    }
    return none;
}

QString chainBehind(const Design& design, const Program& program, const Timeline& timeline, const Block& block,
                    bool named)
{
    const std::vector<WaitLink> chain = waitingChain(program, timeline, block);
    QString text;
    Nanoseconds transfer = chain.empty() ? 0 : chain.front().transfer;
    for (std::size_t i = 1; i < chain.size(); ++i) {
        const QString name = blockText(chain[i].block);
        text += i > 1   ? tr(", which ")
                : named ? QStringLiteral(" %1 ").arg(blockText(chain.front().block))
                        : tr(" That one ");
        text += chain[i].byOrder ? tr("follows %1 there").arg(name)
                                 : tr("waits for %1 on %2").arg(name, deviceLabel(design, chain[i].device));
        transfer += chain[i].transfer;
    }
    if (chain.size() > 1)
        text += QLatin1Char('.');
    if (chain.size() > 1 && transfer > chain.front().transfer)
        text += tr(" %1 of this chain is transfer.").arg(durationText(transfer));
    return text;
}

std::vector<WaitLink> waitingChain(const Program& program, const Timeline& timeline, const Block& block, int links)
{
    std::vector<WaitLink> chain;
    TaskId task = taskOf(program, block);
    while (task != none && static_cast<int>(chain.size()) < links) {
        const LatestInput cause = latestInput(program, timeline, task);
        const TaskId onDevice = program.afterOnDevice[task];
        const bool byOrder = onDevice != none && timeline.end[onDevice] >= cause.ready;
        const TaskId before = byOrder ? onDevice : producer(program, cause.after);
        if (before == none || isReduction(program.tasks[before].kind))
            break;
        chain.push_back({program.tasks[before].block(), program.tasks[before].device, byOrder,
                         byOrder ? 0 : cause.ready - timeline.end[before]});
        task = before;
    }
    return chain;
}

std::optional<Block> lastBlock(const Program& program, const Timeline& timeline)
{
    TaskId last = none;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const TaskKind kind = program.tasks[t].kind;
        const bool runs = isBlockOrUpdate(kind);
        if (runs && (last == none || timeline.end[t] > timeline.end[last]))
            last = t;
    }
    return last == none ? std::nullopt : std::optional(program.tasks[last].block());
}

std::optional<BlockAnswers> explainBlock(const Design& design, const Prediction& prediction, const Block& block)
{
    const Program& program = prediction.program;
    const Timeline& timeline = prediction.timeline;
    BlockAnswers answers;
    answers.task = taskOf(program, block);
    if (answers.task == none)
        return std::nullopt;
    answers.start = timeline.start[answers.task];
    answers.duration = timeline.end[answers.task] - answers.start;
    const TaskId onDevice = program.afterOnDevice[answers.task];
    answers.idleBefore = answers.start - (onDevice == none ? 0 : timeline.end[onDevice]);
    answers.freed = freedAfter(program, answers.task);
    findKept(program, answers);
    for (TaskId t = answers.task + 1; t < program.tasks.size(); ++t) {
        if (program.tasks[t].kind != TaskKind::Transfer || program.afterData[t] != answers.task)
            continue;
        answers.feeds.push_back({t, program.tasks[t].destination(), movedBytes(program, t)});
    }
    const LatestInput cause = latestInput(program, timeline, answers.task);
    if (answers.idleBefore > hostGapBefore(prediction, answers.task, cause)) {
        const TaskId source = producer(program, cause.after);
        if (source != none && program.tasks[source].kind == TaskKind::Compute)
            answers.waitsFor = program.tasks[source].block();
    }
    answers.why = sentence(design, prediction, answers, cause);
    return answers;
}

} // namespace pipewright
