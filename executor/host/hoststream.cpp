// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/host/hoststream.h"

#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <thread>

namespace pipewright {

namespace {

constexpr int spins = 64; // about a microsecond; longer spinning takes the core from the thread that is waited for

void relax()
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

} // namespace

bool HostStream::wait(Event& event)
{
    auto& awaited = static_cast<HostEvent&>(event);
    for (int i = 0; i < spins && !awaited.complete(); ++i)
        relax();
    while (!awaited.complete()) {
        // Read the signal before looking again: a set() in between changes it, and sleep() returns at once.
        const std::uint32_t seen = m_signal->seen();
        if (awaited.complete())
            break;
        if (interrupted())
            return false;
        m_signal->sleep(seen);
    }
    if (awaited.readyAt() > 0 && !sleepUntil(awaited.readyAt()))
        return false;
    return !interrupted();
}

void HostStream::interrupt()
{
    m_interrupted.store(true, std::memory_order_release);
    m_signal->raise();
}

bool HostStream::sleepUntil(Nanoseconds time) const
{
    constexpr Nanoseconds slice = 5'000'000; // upper bound on the delay of an interrupt
    for (Nanoseconds left = time - steadyNow(); left > 0; left = time - steadyNow()) {
        if (interrupted())
            return false;
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left, slice)));
    }
    return true;
}

void HostEvent::set(Nanoseconds readyAt)
{
    const SharedStreamSignal waiter = m_waiter; // kept alive here: once complete, this event may be destroyed
    m_readyAt = readyAt;
    m_complete.store(true, std::memory_order_release);
    waiter->raise();
}

} // namespace pipewright
