// SPDX-License-Identifier: GPL-3.0-or-later
// Puts the thread of a stream to sleep until an event for which it waits may have happened.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace pipewright {

/// Shared by the stream and its events: a thread that completes an event may still be in raise() when the stream's
/// thread has already seen the event and destroyed the stream.
class StreamSignal {
public:
    std::uint32_t seen() const { return m_raised.load(std::memory_order_acquire); }
    /// Returns once raise() was called after seen() gave `seen`.
    void sleep(std::uint32_t seen) const { m_raised.wait(seen, std::memory_order_acquire); }
    void raise()
    {
        m_raised.fetch_add(1, std::memory_order_release);
        m_raised.notify_one();
    }

private:
    std::atomic<std::uint32_t> m_raised{0};
};

using SharedStreamSignal = std::shared_ptr<StreamSignal>;

} // namespace pipewright
