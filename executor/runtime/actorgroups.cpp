// SPDX-License-Identifier: GPL-3.0-or-later
// The actor's side of a group's collectives.
#include "executor/runtime/actor.h"

namespace pipewright {

Barrier& Actor::barrierOfGroup() const
{
    const int group = m_run.program->groupOfDevice[static_cast<std::size_t>(m_device)];
    return *m_run.barriers[static_cast<std::size_t>(group)];
}

/// A collective begins when the last member arrives. The first member records it; on asynchronous devices it is the
/// last member to learn its own times.
bool Actor::collective(const PlannedInstruction& instruction)
{
    const Task& task = m_run.program->tasks[instruction.task];
    if (m_stopwatch && !m_run.work->collectivesOnStreams() && !m_stream->synchronize())
        return false;
    // The last member to arrive never sets the waiting state: otherwise all members would seem to wait and none to run.
    const auto latest = barrierOfGroup().arriveAndWait(m_clock, m_run.stopped, [this](std::uint64_t round) {
        m_barrierRound.store(round, std::memory_order_relaxed);
        setState(State::WaitsForMembers);
    });
    if (!latest)
        return false;
    setState(State::Running);
    makeProgress();
    const TaskContext context = contextOf(instruction);
    m_run.work->beforeCollective(context);
    const Nanoseconds start = m_run.options.virtualClock ? *latest : now();
    const std::size_t startPlace = markStart();
    const InTurn turn = [this, &context](const std::function<void()>& give) { m_run.work->inTurn(context, give); };
    if (m_marks)
        m_marks->begin(instruction.task, m_labels[m_instruction.load(std::memory_order_relaxed)].c_str());
    if (!m_marks || !m_capture || !m_run.work->repeats(task) || !m_marks->replay(instruction.task, &turn))
        m_run.work->collective(context);
    if (m_marks)
        m_marks->end(&turn);
    if (m_run.options.virtualClock)
        m_clock = start + m_run.options.durations[instruction.task];
    if (m_run.stopped.load(std::memory_order_relaxed))
        return false;
    m_lastEnd = now();
    if (m_stopwatch)
        recordLater(instruction.task, startPlace);
    else if (task.device == m_device)
        recordTask(instruction.task, start, m_lastEnd);
    return true;
}

void Actor::recordCollective(TaskId id, Nanoseconds start, Nanoseconds end)
{
    const Task& task = m_run.program->tasks[id];
    if (barrierOfGroup().members() == 1) { // the others are in other processes
        if (task.device == m_device)
            recordTask(id, start, end);
        return;
    }
    if (const auto whole = m_run.collectiveSpans.add(id, task.memberCount(), start, end))
        m_run.recorder->record(m_device, TaskRecord{id, m_run.step, task.device, whole->start, whole->end});
}

} // namespace pipewright
