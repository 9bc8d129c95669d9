// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/families/vlanes.h"

#include <algorithm>

namespace pipewright {

int VLanes::peak(int device) const
{
    int alive = 0, most = 0;
    for (const std::uint8_t pass : lanes[static_cast<std::size_t>(device)]) {
        alive += pass <= forwardBack ? 1 : pass == weightFirst || pass == weightBack ? -1 : 0;
        most = std::max(most, alive);
    }
    return most;
}

int VLanes::peak() const
{
    int most = 0;
    for (int d = 0; d < devices; ++d)
        most = std::max(most, peak(d));
    return most;
}

std::vector<std::vector<Block>> VLanes::blocks() const
{
    static constexpr Op op[] = {Op::F, Op::F, Op::I, Op::I, Op::W, Op::W};
    std::vector<std::vector<Block>> order;
    for (int d = 0; d < devices; ++d) {
        std::vector<Block>& blocks = order.emplace_back();
        blocks.reserve(lanes[static_cast<std::size_t>(d)].size());
        std::array<int, vPasses> next{};
        for (const std::uint8_t pass : lanes[static_cast<std::size_t>(d)]) {
            const bool own = pass == forwardFirst || pass == gradientBack || pass == weightBack;
            blocks.push_back({op[pass], own ? d : 2 * devices - 1 - d, next[pass]++});
        }
    }
    return order;
}

VTimes unitTimes(int devices)
{
    VTimes times;
    times.fill(std::vector<Nanoseconds>(static_cast<std::size_t>(devices), 1));
    return times;
}

std::optional<Nanoseconds> VClock::run(const VLanes& lanes, const VTimes& times, Nanoseconds transfer,
                                       std::vector<std::vector<int>>* start)
{
    const int devices = lanes.devices, last = devices - 1;
    const auto microbatches = static_cast<std::size_t>(lanes.microbatches);
    for (auto& ends : m_end)
        ends.resize(static_cast<std::size_t>(devices) * microbatches);
    m_count.assign(static_cast<std::size_t>(devices), {});
    m_next.assign(static_cast<std::size_t>(devices), 0);
    m_free.assign(static_cast<std::size_t>(devices), 0);
    m_first.assign(static_cast<std::size_t>(devices), 0);
    if (start != nullptr) {
        start->resize(static_cast<std::size_t>(devices));
        for (int d = 0; d < devices; ++d)
            (*start)[static_cast<std::size_t>(d)].resize(lanes.lanes[static_cast<std::size_t>(d)].size());
    }

    // A device goes on until it waits for a neighbour; sweeps down and up the V wake it again.
    const auto advance = [&](int device) {
        const auto d = static_cast<std::size_t>(device);
        const VLanes::Lane& lane = lanes.lanes[d];
        std::size_t i = m_next[d];
        for (; i < lane.size(); ++i) {
            const std::uint8_t pass = lane[i];
            const auto m = static_cast<std::size_t>(m_count[d][pass]);
            if (m >= microbatches)
                break;
            Nanoseconds from = m_free[d];
            if (pass >= weightFirst) {
                if (m_count[d][pass - 2] <= static_cast<int>(m))
                    break;
            } else {
                const bool down = pass == forwardFirst || pass == gradientFirst;
                const int source = down ? device - 1 : device < last ? device + 1 : -1;
                if (source >= 0) {
                    const auto s = static_cast<std::size_t>(source);
                    if (m_count[s][pass] <= static_cast<int>(m))
                        break;
                    from = std::max(from, m_end[pass][s * microbatches + m] + transfer);
                } else if (pass > 0 && m_count[d][pass - 1] <= static_cast<int>(m)) {
                    break;
                }
            }
            if (i == 0)
                m_first[d] = from;
            if (start != nullptr)
                (*start)[d][i] = static_cast<int>(from);
            m_free[d] = from + times[pass][d];
            m_end[pass][d * microbatches + m] = m_free[d];
            ++m_count[d][pass];
        }
        const bool moved = i != m_next[d];
        m_next[d] = i;
        return moved;
    };
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < devices; ++d)
            moved |= advance(d);
        for (int d = last; d-- > 0;)
            moved |= advance(d);
    }
    Nanoseconds span = 0;
    for (std::size_t d = 0; d < m_next.size(); ++d) {
        if (m_next[d] < lanes.lanes[d].size())
            return {};
        span = std::max(span, m_free[d] - m_first[d]);
    }
    return span;
}

} // namespace pipewright
