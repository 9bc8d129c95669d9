// SPDX-License-Identifier: GPL-3.0-or-later
// Collectives among the threads that stand for a stage's devices. Every device shows its tensor, all wait, each
// reads what it needs and all wait again before anybody goes on: nothing is copied twice, and the sum of a
// reduction is always taken in the order of the devices, so that everyone gets the same bits. Devices whose
// piece is empty take part like the others.
//
// Devices of which the speed is emulated have clocks of their own; a collective sets all to the latest.
#pragma once

#include "executor/spmd/hosttensor.h"

#include <barrier>
#include <chrono>
#include <vector>

namespace pipewright::spmd {

class Exchange {
public:
    explicit Exchange(int devices);

    int devices() const { return static_cast<int>(m_shown.size()); }
    /// Waits until all devices are here.
    void wait() { m_barrier.arrive_and_wait(); }
    using Clock = std::chrono::steady_clock;
    /// The device's own; nobody else reads it but in a collective.
    Clock::time_point& clock(int device) { return m_clocks[static_cast<std::size_t>(device)]; }

    HostTensor allGather(int device, const HostTensor& piece, int dim);
    HostTensor allReduce(int device, const HostTensor& part);
    /// The device's own [first, first + length) of the sum.
    HostTensor reduceScatter(int device, const HostTensor& part, int dim, std::int64_t first, std::int64_t length);
    /// From pieces along one dimension to pieces along another, or other pieces along the same.
    HostTensor allToAll(int device, const HostTensor& piece, int from, int to, std::int64_t first, std::int64_t length);

private:
    template<typename Work>
    HostTensor together(int device, const HostTensor& mine, Work work);

    std::vector<const HostTensor*> m_shown;
    std::vector<Clock::time_point> m_clocks;
    std::barrier<> m_barrier;
};

} // namespace pipewright::spmd
