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
    const bool isTask = isTransferTask(transfer), blocks = isTask && m_run.program->blockingTransfers;
    if (m_run.options.virtualClock && isTask && !stampSend(index))
        return false;
    const Nanoseconds atLeast = m_run.options.emulateLinks && isTask ? m_run.options.durations[what.task] : 0;
    if (!m_linksStalled)
        recordCopy(transfer, m_run.links[what.link]->send(
                                 *m_stream, {what.task, what.source, m_run.sent[index].get(), atLeast, blocks}));
    return !blocks || finishBlocking(State::WaitsForSend, transfer);
}

/// Virtual clock: when the transfer begins and ends, or, when it blocks, when this side came to it.
bool Actor::stampSend(std::size_t index)
{
    const PlannedTransfer& what = m_run.plan.transfers[index];
    Nanoseconds start = 0;
    for (const BufferId buffer : m_run.program->reads(what.task))
        start = std::max(start, m_run.bufferReady[buffer]);
    // A stated order of transfers may put the send behind other blocks than the one it follows by itself.
    if (what.behindBlocks)
        start = std::max(start, m_clock);
    if (m_run.program->blockingTransfers) {
        m_run.senderReady[index] = std::max(start, m_clock);
        return true;
    }
    if (what.behind >= 0) {
        if (!waitForLink(what.behind))
            return false;
        const auto before = static_cast<std::size_t>(what.behind);
        start = std::max(start, m_run.transferEnd[before] - m_run.options.latencies[m_run.plan.transfers[before].task]);
    }
    m_run.transferStart[index] = start;
    m_run.transferEnd[index] = start + m_run.options.durations[what.task];
    m_run.leftLink[index].store(true, std::memory_order_release);
    m_run.leftLink[index].notify_all();
    return true;
}

bool Actor::receive(int transfer)
{
    const auto index = static_cast<std::size_t>(transfer);
    const PlannedTransfer& what = m_run.plan.transfers[index];
    const bool isTask = isTransferTask(transfer), blocks = isTask && m_run.program->blockingTransfers;
    if (m_run.options.virtualClock && blocks)
        m_run.receiverReady[index] = m_clock;
    const Nanoseconds atLeast = m_run.options.emulateLinks && isTask ? m_run.options.durations[what.task] : 0;
    recordCopy(transfer, m_run.links[what.link]->receive(
                             *m_stream, {what.task, what.destination, m_run.arrived[index].get(), atLeast, blocks}));
    return !blocks || finishBlocking(State::WaitsForArrival, transfer);
}

/// Both devices go on when the transfer is over.
bool Actor::finishBlocking(State side, int transfer)
{
    if (!waitFor(side, transfer))
        return false;
    if (m_run.options.virtualClock) {
        const auto index = static_cast<std::size_t>(transfer);
        m_clock = std::max(m_run.senderReady[index], m_run.receiverReady[index])
                  + m_run.options.durations[m_run.plan.transfers[index].task];
        if (side == State::WaitsForArrival)
            m_run.transferEnd[index] = m_clock;
    }
    return true;
}

bool Actor::waitFor(State state, int transfer)
{
    const auto& events = state == State::WaitsForArrival ? m_run.arrived : m_run.sent;
    Event& event = *events[transfer];
    m_transfer.store(transfer, std::memory_order_relaxed);
    makeProgress();
    setState(state);
    if (!m_stream->wait(event))
        return false; // the state stays: it says what this device was waiting for
    setState(State::Running);
    // What runs later than it is issued is asked for its times when all of it is over.
    if (m_run.linksFinishLater && !m_stopwatch && state == State::WaitsForArrival)
        recordFinished(m_run.plan.transfers[transfer].link);
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

/// Until the sender of that transfer has said when it leaves the link they share. False when stopped.
bool Actor::waitForLink(int transfer)
{
    std::atomic<bool>& left = m_run.leftLink[transfer];
    m_transfer.store(transfer, std::memory_order_relaxed);
    makeProgress();
    setState(State::WaitsForLink);
    left.wait(false, std::memory_order_acquire);
    if (m_run.stopped.load(std::memory_order_acquire))
        return false; // the state stays: it says what this device was waiting for
    setState(State::Running);
    return true;
}

/// By whichever side carried the copy out; halves of a reduction are part of its own record.
void Actor::recordCopy(int transfer, const Copied& copied)
{
    if (!m_run.recorder || copied.task == none || m_run.program->tasks[copied.task].kind != TaskKind::Transfer)
        return;
    const auto index = static_cast<std::size_t>(transfer);
    TaskRecord record{copied.task, m_run.step, m_run.plan.transfers[index].to, copied.start, copied.end};
    if (m_run.options.virtualClock) {
        record.start = m_run.program->blockingTransfers ? std::max(m_run.senderReady[index], m_run.receiverReady[index])
                                                        : m_run.transferStart[index];
        record.end = record.start + m_run.options.durations[copied.task];
    }
    m_run.recorder->record(m_device, record);
}

} // namespace pipewright
