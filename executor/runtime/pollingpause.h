// SPDX-License-Identifier: GPL-3.0-or-later
// Pauses between two questions whether work on a device is done. They grow with the wait, so that a long block is asked
// seldom: the answer comes late by the shortest pause, or by a 64th of the wait, but by no more than a millisecond.
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
