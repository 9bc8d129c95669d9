// SPDX-License-Identifier: GPL-3.0-or-later
// The actor's side of its links: postings, waits, and on the virtual clock the times of transfers.
#include "executor/runtime/actor.h"

#include <algorithm>

namespace pipewright {

bool Actor::isTransferTask(int transfer) const
{
    return m_run.program->tasks[m_run.plan.transfers[transfer].task].kind == TaskKind::Transfer;
}

bool Actor::send(int transfer)
{
    const auto index = static_cast<std::size_t>(transfer);
    const PlannedTransfer& what = m_run.plan.transfers[index];
    const bool isTask = isTransferTask(transfer), blocks = isTask && m_run.program->blocks();
    if (m_run.options.virtualClock && isTask)
        stampSend(index);
    if (!m_linksStalled)
        recordCopy(transfer, m_run.links[what.link]->send(*m_stream,
                                                          posting(what, isTask, what.source, m_run.sent[index].get())));
    return !blocks || finishBlocking(State::WaitsForSend, transfer);
}

/// Virtual clock: sets when the transfer begins and ends or, if it blocks, when this side reached it.
void Actor::stampSend(std::size_t index)
{
    const PlannedTransfer& what = m_run.plan.transfers[index];
    Nanoseconds start = 0;
    for (const BufferId buffer : m_run.program->reads(what.task)) {
        const BufferKind kind = m_run.program->buffers[buffer].kind;
        // Weights that are passed from block to block leave when the block has ended, which is now.
        const bool hops = m_run.program->shardedStates && isPassedOnWeights(kind);
        start = std::max(start, hops ? m_clock : m_run.virtualClock.bufferReady[buffer]);
    }
    // A given order of transfers may place the send after later blocks than the one that made its value; a slowed
    // device reaches it late.
    if (what.behindBlocks || m_slowed)
        start = std::max(start, m_clock);
    if (m_run.program->blocks() || what.meets) {
        m_run.virtualClock.senderReady[index] = std::max(start, m_clock);
        return;
    }
    m_run.virtualClock.transferStart[index] = start + waitForBus(what.task);
    m_run.virtualClock.transferEnd[index] =
        m_run.virtualClock.transferStart[index] + m_run.options.durations[what.task];
}

Nanoseconds Actor::waitForBus(TaskId transfer) const
{
    return m_run.options.busUses.empty() ? 0 : m_run.options.busUses[transfer].wait;
}

/// Waits until a sum over replicas gets its buses on emulated links. Returns false when stopped.
bool Actor::waitForTurn(TaskId sum)
{
    const BusUse& use = m_run.options.busUses[sum];
    const auto busOf = [this](int bus) { return bus < 0 ? nullptr : m_run.buses[static_cast<std::size_t>(bus)].get(); };
    if (use.bus < 0 && use.back < 0)
        return true;
    const Nanoseconds start = m_run.sumTurns->take(sum, busOf(use.bus), use.held, busOf(use.back), use.heldBack);
    return pause(start - steadyNow());
}

/// Virtual clock: when a transfer begins that both sides must have reached.
Nanoseconds Actor::meetingStart(std::size_t index) const
{
    return std::max(m_run.virtualClock.senderReady[index], m_run.virtualClock.receiverReady[index])
           + waitForBus(m_run.plan.transfers[index].task);
}

/// The posting of one side of a transfer, with its times if links are emulated.
Posting Actor::posting(const PlannedTransfer& what, bool isTask, std::span<const Region> regions, Event* done) const
{
    Posting posting{what.task, regions, done, 0, isTask && m_run.program->blocks()};
    posting.timed = m_run.recorder != nullptr;
    if (!isTask || !m_run.options.emulateLinks)
        return posting;
    posting.atLeast = m_run.options.durations[what.task];
    if (m_run.options.busUses.empty() || m_run.options.busUses[what.task].bus < 0)
        return posting;
    const BusUse& use = m_run.options.busUses[what.task];
    posting.bus = m_run.buses[static_cast<std::size_t>(use.bus)].get();
    posting.held = use.held;
    return posting;
}

bool Actor::receive(int transfer)
{
    const auto index = static_cast<std::size_t>(transfer);
    const PlannedTransfer& what = m_run.plan.transfers[index];
    const bool isTask = isTransferTask(transfer), blocks = isTask && m_run.program->blocks();
    if (m_run.options.virtualClock && (blocks || what.meets))
        m_run.virtualClock.receiverReady[index] = m_clock;
    recordCopy(transfer, m_run.links[what.link]->receive(
                             *m_stream, posting(what, isTask, what.destination, m_run.arrived[index].get())));
    return !blocks || finishBlocking(State::WaitsForArrival, transfer);
}

/// Both devices continue when the transfer is over.
bool Actor::finishBlocking(State side, int transfer)
{
    if (!waitFor(side, transfer))
        return false;
    if (m_run.options.virtualClock) {
        const auto index = static_cast<std::size_t>(transfer);
        m_clock = meetingStart(index) + m_run.options.durations[m_run.plan.transfers[index].task];
        if (side == State::WaitsForArrival)
            m_run.virtualClock.transferEnd[index] = m_clock;
    }
    return true;
}

bool Actor::waitFor(State state, int transfer)
{
    const auto& events = state == State::WaitsForArrival ? m_run.arrived : m_run.sent;
    Event& event = *events[transfer];
    (state == State::WaitsForArrival ? m_arriving : m_sending).store(transfer, std::memory_order_relaxed);
    makeProgress();
    setState(state);
    if (!m_stream->wait(event))
        return false; // the state is kept: it says what this device was waiting for
    setState(State::Running);
    if (m_run.plan.transfers[transfer].link < 0) {
        if (m_run.options.virtualClock && state == State::WaitsForSend)
            m_clock = std::max(m_clock, m_run.virtualClock.transferEnd[transfer]);
        if (!m_stopwatch) // with a stopwatch they are recorded at the end of the step
            recordHostCopies();
        return true;
    }
    // Asynchronous devices report their times at the end of the step.
    if (m_run.linksFinishLater && !m_stopwatch && state == State::WaitsForArrival)
        recordFinished(m_run.plan.transfers[transfer].link);
    return true;
}

/// Waits for all values that the instruction reads. Returns false when stopped.
bool Actor::waitForArrivals(const PlannedInstruction& instruction)
{
    for (std::uint32_t i = instruction.arrivals.begin; i < instruction.arrivals.end; ++i) {
        const std::uint32_t transfer = m_plan->arrivals[i];
        if (!waitFor(State::WaitsForArrival, static_cast<int>(transfer)))
            return false;
        if (!m_run.options.virtualClock)
            continue;
        Nanoseconds& end = m_run.virtualClock.transferEnd[transfer];
        if (const PlannedTransfer& what = m_run.plan.transfers[transfer]; what.meets && !m_run.program->blocks())
            end = meetingStart(transfer) + m_run.options.durations[what.task];
        m_clock = std::max(m_clock, end);
    }
    return true;
}

void Actor::recordFinished(int link)
{
    m_finished.clear();
    m_run.links[link]->finished(m_finished);
    for (const Copied& copied : m_finished)
        if (m_run.program->tasks[copied.task].kind == TaskKind::Transfer)
            recordTask(copied.task, copied.start, copied.end);
}

/// Called by the side that carried out the copy. The halves of a reduction are part of the reduction's record.
void Actor::recordCopy(int transfer, const Copied& copied)
{
    if (!m_run.recorder || copied.task == none || m_run.program->tasks[copied.task].kind != TaskKind::Transfer)
        return;
    const auto index = static_cast<std::size_t>(transfer);
    TaskRecord record{copied.task, m_run.step, m_run.plan.transfers[index].to, copied.start, copied.end};
    if (m_run.options.virtualClock) {
        record.start = m_run.program->blocks() || m_run.plan.transfers[index].meets
                           ? meetingStart(index)
                           : m_run.virtualClock.transferStart[index];
        record.end = record.start + m_run.options.durations[copied.task];
    }
    m_run.recorder->record(m_device, record);
}

void Actor::copyToHost(int transfer)
{
    const PlannedTransfer& what = m_run.plan.transfers[transfer];
    const Nanoseconds atLeast = startOfCopy(transfer, m_outFree);
    if (!m_linksStalled)
        m_run.hostStores[m_device]->copy(
            HostStore::Direction::Out, *m_stream,
            {what.task, what.source, what.destination, m_run.sent[transfer].get(), atLeast, m_run.recorder != nullptr});
}

void Actor::copyFromHost(int transfer)
{
    const PlannedTransfer& what = m_run.plan.transfers[transfer];
    const Nanoseconds atLeast = startOfCopy(transfer, m_inFree);
    if (!m_linksStalled)
        m_run.hostStores[m_device]->copy(HostStore::Direction::In, *m_stream,
                                         {what.task, what.source, what.destination, m_run.arrived[transfer].get(),
                                          atLeast, m_run.recorder != nullptr});
}

/// Virtual clock: the copy begins when the device reaches it and the wire is free. Returns its least duration.
Nanoseconds Actor::startOfCopy(int transfer, Nanoseconds& wireFree)
{
    const TaskId task = m_run.plan.transfers[transfer].task;
    if (m_run.options.virtualClock) {
        Nanoseconds ready = m_clock;
        if (m_run.program->tasks[task].kind == TaskKind::Offload) // at the earliest when its forward has ended
            for (const BufferId buffer : m_run.program->reads(task))
                ready = std::min(ready, m_run.virtualClock.bufferReady[buffer]);
        m_run.virtualClock.transferStart[transfer] = std::max(ready, wireFree);
        wireFree = m_run.virtualClock.transferEnd[transfer] =
            m_run.virtualClock.transferStart[transfer] + m_run.options.durations[task];
    }
    return m_run.options.emulateLinks ? m_run.options.durations[task] : 0;
}

void Actor::recordHostCopies()
{
    HostStore* const store = m_run.hostStores[m_device];
    if (store == nullptr)
        return;
    m_finished.clear();
    store->finished(m_finished);
    for (const Copied& copied : m_finished) {
        if (!m_run.options.virtualClock) {
            recordTask(copied.task, copied.start, copied.end);
            continue;
        }
        const auto& transfers = m_run.plan.transfers; // in the order of their tasks
        const auto at =
            std::lower_bound(transfers.begin(), transfers.end(), copied.task,
                             [](const PlannedTransfer& transfer, TaskId task) { return transfer.task < task; });
        const auto index = static_cast<std::size_t>(at - transfers.begin());
        recordTask(copied.task, m_run.virtualClock.transferStart[index], m_run.virtualClock.transferEnd[index]);
    }
}

} // namespace pipewright
