// SPDX-License-Identifier: GPL-3.0-or-later
// Pauses between two questions whether work on a device is done. They grow with the wait: what is short is noticed at
// once, and a long block is asked seldom, at most a 64th of its time late.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace pipewright {

class PollingPause {
public:
    explicit PollingPause(std::chrono::nanoseconds shortest) : m_shortest(shortest) {}

    void sleep()
    {
        constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(1);
        const auto pause = std::clamp(m_waited / 64, m_shortest, longest);
        std::this_thread::sleep_for(pause);
        m_waited += pause;
    }

private:
    std::chrono::nanoseconds m_shortest, m_waited{0};
};

} // namespace pipewright
