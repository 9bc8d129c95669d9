// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/spmd/exchange.h"

#include <algorithm>

namespace pipewright::spmd {

Exchange::Exchange(int devices)
    : m_shown(static_cast<std::size_t>(devices), nullptr), m_clocks(static_cast<std::size_t>(devices)),
      m_barrier(devices)
{
}

template<typename Work>
HostTensor Exchange::together(int device, const HostTensor& mine, Work work)
{
    m_shown[static_cast<std::size_t>(device)] = &mine;
    m_barrier.arrive_and_wait();
    HostTensor result = work();
    const Clock::time_point latest = *std::max_element(m_clocks.begin(), m_clocks.end());
    m_barrier.arrive_and_wait();
    clock(device) = latest;
    return result;
}

HostTensor Exchange::allGather(int device, const HostTensor& piece, int dim)
{
    return together(device, piece, [&] { return joined(m_shown, dim); });
}

HostTensor Exchange::allReduce(int device, const HostTensor& part)
{
    return together(device, part, [&] { return summed(m_shown); });
}

HostTensor Exchange::reduceScatter(int device, const HostTensor& part, int dim, std::int64_t first, std::int64_t length)
{
    return together(device, part, [&] {
        HostTensor sum = cut(*m_shown.front(), dim, first, length);
        for (std::size_t d = 1; d < m_shown.size(); ++d)
            accumulate(sum, cut(*m_shown[d], dim, first, length));
        return sum;
    });
}

HostTensor Exchange::allToAll(int device, const HostTensor& piece, int from, int to, std::int64_t first,
                              std::int64_t length)
{
    return together(device, piece, [&] {
        if (from == to)
            return cut(joined(m_shown, from), to, first, length);
        std::vector<HostTensor> mine;
        std::vector<const HostTensor*> shown;
        for (const HostTensor* other : m_shown)
            mine.push_back(cut(*other, to, first, length));
        for (const HostTensor& one : mine)
            shown.push_back(&one);
        return joined(shown, from);
    });
}

} // namespace pipewright::spmd
