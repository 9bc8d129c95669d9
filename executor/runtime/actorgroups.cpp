// SPDX-License-Identifier: GPL-3.0-or-later
// The actor's side of what the members of a group do together.
#include "executor/runtime/actor.h"

namespace pipewright {

Barrier& Actor::barrierOfGroup() const
{
    const int group = m_run.program->groupOfDevice[static_cast<std::size_t>(m_device)];
    return *m_run.barriers[static_cast<std::size_t>(group)];
}

/// From when the last member has come. The first member records it, or, where things happen later than they are issued,
/// the last one to know its own times.
bool Actor::collective(const PlannedInstruction& instruction)
{
    const Task& task = m_run.program->tasks[instruction.task];
    if (m_stopwatch && !m_run.work->collectivesOnStreams() && !m_stream->synchronize())
        return false;
    // The last member to come never says that it waits: the others, who do, would seem to wait for nobody.
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
    const std::size_t startPlace = m_stopwatch ? mark() : 0;
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
        recordLater(instruction.task, startPlace, mark());
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
    if (const auto whole = m_run.collectiveSpans.add(id, task.peer - task.device + 1, start, end))
        m_run.recorder->record(m_device, TaskRecord{id, m_run.step, task.device, whole->start, whole->end});
}

} // namespace pipewright
