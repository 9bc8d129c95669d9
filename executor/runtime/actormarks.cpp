// SPDX-License-Identifier: GPL-3.0-or-later
// The actor's side of a device that runs work asynchronously: marks on its stream say when each block really began and
// ended, once the stream has reached them. A mark is a call of the driver, which the host spends for every block, so
// there are marks only for a trace and in long steps.
#include "executor/runtime/actor.h"
#include "executor/runtime/pollingpause.h"

#include <chrono>

namespace pipewright {

namespace {

/// A step that took less than this part of the deadline is not marked, and may take that many times as long.
constexpr Nanoseconds shareOfDeadline = 10;

} // namespace

/// For a trace, and where the watching thread would otherwise see no progress for too large a part of its deadline.
bool Actor::marks() const
{
    return m_stopwatch && (m_run.recorder || m_isLong);
}

void Actor::noteStepTime(Nanoseconds time)
{
    m_isLong = time > m_run.options.deadline / shareOfDeadline;
}

/// Waits for the issued work, block by block where it is marked, so that the watching thread sees the progress, and
/// records its times. Returns false when stopped.
bool Actor::settle()
{
    if (!m_stopwatch)
        return true;
    if (!marks()) // all of the list is issued, and what of it runs now is not known
        m_instruction.store(static_cast<std::uint32_t>(m_plan->instructions.size()), std::memory_order_relaxed);
    for (const LaterTask& later : m_laterTasks) {
        m_instruction.store(later.instruction, std::memory_order_relaxed);
        PollingPause pause(std::chrono::microseconds(50));
        while (!m_stopwatch->passed(later.end)) {
            if (m_run.stopped.load(std::memory_order_acquire))
                return false;
            pause.sleep();
        }
        makeProgress();
    }
    if (!m_stream->synchronize())
        return false;
    for (std::size_t link = 0; link < m_run.links.size(); ++link)
        if (m_run.plan.links[link].from == m_device)
            m_run.links[link]->settled();
    if (m_run.recorder)
        recordSettled();
    return true;
}

void Actor::recordSettled()
{
    for (const LaterTask& later : m_laterTasks) {
        if (later.task == none)
            continue;
        const Nanoseconds start = m_stopwatch->at(later.start), end = m_stopwatch->at(later.end);
        if (m_run.program->tasks[later.task].kind == TaskKind::Collective)
            recordCollective(later.task, start, end);
        else
            recordTask(later.task, start, end);
    }
    for (const LaterMemory& later : m_laterMemory)
        m_run.recorder->record(m_device, MemoryRecord{m_device, m_run.step, m_stopwatch->at(later.place), later.bytes});
    for (std::size_t link = 0; link < m_run.links.size(); ++link)
        if (m_run.plan.links[link].to == m_device)
            recordFinished(static_cast<int>(link));
    recordSums();
    recordHostCopies();
}

std::size_t Actor::mark()
{
    m_stopwatch->mark(m_places);
    return m_places++;
}

/// The place of a block's start, which only a trace needs.
std::size_t Actor::markStart()
{
    return m_stopwatch && m_run.recorder ? mark() : 0;
}

/// Marks its end. `task` none: settle() waits for it and records nothing.
void Actor::recordLater(TaskId task, std::size_t start)
{
    if (marks())
        m_laterTasks.push_back({task, m_instruction.load(std::memory_order_relaxed), start, mark()});
}

} // namespace pipewright
