// SPDX-License-Identifier: GPL-3.0-or-later
// The watch over a step: the calling thread reads the status of all devices every watchInterval and ends the step when
// all are done, one has failed, or there was no progress for the deadline (stall.h says who waits for whom). O(devices)
// per check.
#include "executor/runtime/runtime.h"
#include "executor/runtime/steadyclock.h"

#include <algorithm>

namespace pipewright {

/// Returns when no actor runs any more.
Runtime::Verdict Runtime::watch(RunSnapshot& snapshot, std::string& reason)
{
    const bool provable = !m_run.linksFinishLater;
    std::uint64_t lastProgress = totalProgress();
    Nanoseconds lastChange = steadyNow();
    Verdict verdict = Verdict::Finished;
    std::unique_lock lock(m_mutex);
    while (!m_finished.wait_for(lock, std::chrono::nanoseconds(m_run.options.watchInterval),
                                [this] { return m_running == 0; })) {
        lock.unlock();
        publish();
        if (m_peers && !m_peers->failureReason().empty()) {
            verdict = Verdict::Failed;
            reason = m_peers->failureReason();
            snapshot = takeSnapshot();
        } else if (cancelled()) {
            verdict = Verdict::Cancelled;
        } else {
            // A snapshot counts only if nothing moved while it was taken.
            const std::uint64_t before = totalProgress();
            snapshot = takeSnapshot();
            const bool still = totalProgress() == before;
            if (before != lastProgress) {
                lastProgress = before;
                lastChange = steadyNow();
            }
            const bool failed =
                std::any_of(snapshot.actors.begin(), snapshot.actors.end(),
                            [](const ActorStatus& actor) { return actor.state == ActorStatus::State::Failed; });
            if (failed && !provable && !m_peers) {
                verdict = Verdict::Failed; // devices that wait for it cannot be told from busy ones
                reason = "a device failed";
            } else if (still && provable && cannotGoOn(snapshot)) {
                verdict = Verdict::Failed;
                reason = "no device can go on";
            } else if (steadyNow() - lastChange > m_run.options.deadline) {
                verdict = Verdict::Failed;
                reason = "no device has made progress for " + formatDuration(m_run.options.deadline);
                if (const std::string silent = m_peers ? m_peers->silence() : std::string(); !silent.empty())
                    reason += "; " + silent;
            }
        }
        if (verdict != Verdict::Finished)
            stopActors();
        lock.lock();
        if (verdict != Verdict::Finished) {
            const auto over = [this] { return m_running == 0; };
            if (m_run.options.abandon
                && !m_finished.wait_for(lock, std::chrono::nanoseconds(m_run.options.patience), over)) {
                lock.unlock();
                m_run.options.abandon(
                    whoDoesNotComeBack(m_run, m_actors, reason.empty() ? "it was cancelled" : reason));
                lock.lock();
            }
            m_finished.wait(lock, over);
            return verdict;
        }
    }
    lock.unlock();
    snapshot = takeSnapshot();
    const auto stuck = std::any_of(m_actors.begin(), m_actors.end(),
                                   [](const auto& actor) { return actor->status().state != ActorStatus::State::Done; });
    if (stuck) {
        reason = "not every device finished its list";
        return Verdict::Failed;
    }
    return Verdict::Finished;
}

bool Runtime::cancelled() const
{
    const bool asked = m_run.options.cancel != nullptr && m_run.options.cancel->load(std::memory_order_relaxed);
    if (asked && m_peers)
        m_peers->cancel();
    return asked || (m_peers && m_peers->cancelled());
}

/// Tells the other processes the status of this process's device.
void Runtime::publish() const
{
    for (const auto& actor : m_actors)
        if (m_peers) {
            const ActorStatus status = actor->status();
            m_peers->publish({actor->progress(), status.instruction, status.transfer,
                              static_cast<std::uint8_t>(status.state), status.ready});
        }
}

RunSnapshot Runtime::takeSnapshot() const
{
    RunSnapshot snapshot;
    for (int d = 0; d < static_cast<int>(m_run.program->devices.size()); ++d) {
        if (m_backend.isLocal(d)) {
            snapshot.actors.push_back(actor(d).status());
            continue;
        }
        const Standing standing = m_peers->standing(d);
        const auto state =
            m_peers->gone(d) ? ActorStatus::State::Dead : static_cast<ActorStatus::State>(standing.state);
        snapshot.actors.push_back({state, standing.instruction, standing.transfer, standing.ready});
    }
    for (const auto& link : m_run.links)
        snapshot.links.push_back(link ? link->heads() : Link::Heads{});
    return snapshot;
}

std::uint64_t Runtime::totalProgress() const
{
    std::uint64_t sum = 0;
    for (const auto& actor : m_actors)
        sum += actor->progress();
    for (int d = 0; m_peers && d < m_backend.devices(); ++d)
        if (!m_backend.isLocal(d))
            sum += m_peers->standing(d).progress;
    return sum;
}

} // namespace pipewright
