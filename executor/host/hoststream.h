// SPDX-License-Identifier: GPL-3.0-or-later
// The host's streams and events. A host stream is simply the thread that uses it: what it issues has
// happened when the call returns. Waiting spins for about a microsecond and then sleeps on a futex, since
// there are usually more devices than cores; completing an event wakes only the stream that may wait for it.
#pragma once

#include "executor/runtime/backend.h"
#include "executor/runtime/streamsignal.h"

#include <atomic>

namespace pipewright {

class HostStream final : public Stream {
public:
    bool wait(Event& event) override;
    bool synchronize() override { return !interrupted(); }
    void interrupt() override;
    void resume() override { m_interrupted.store(false, std::memory_order_release); }

    bool interrupted() const { return m_interrupted.load(std::memory_order_acquire); }
    const SharedStreamSignal& signal() const { return m_signal; }

private:
    bool sleepUntil(Nanoseconds time) const;

    SharedStreamSignal m_signal = std::make_shared<StreamSignal>();
    std::atomic<bool> m_interrupted{false};
};

class HostEvent final : public Event {
public:
    explicit HostEvent(const HostStream& waiter) : m_waiter(waiter.signal()) {}
    bool complete() const override { return m_complete.load(std::memory_order_acquire); }
    void reset() override { m_complete.store(false, std::memory_order_release); }

    /// Marks the event as complete and wakes its waiter, which continues no earlier than `readyAt` (steadyNow; 0: at
    /// once).
    void set(Nanoseconds readyAt = 0);
    /// Only meaningful when complete().
    Nanoseconds readyAt() const { return m_readyAt; }

private:
    SharedStreamSignal m_waiter;
    Nanoseconds m_readyAt = 0;
    std::atomic<bool> m_complete{false};
};

} // namespace pipewright
