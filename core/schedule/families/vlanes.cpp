// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/families/vlanes.h"

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

constexpr Nanoseconds notDone = std::numeric_limits<Nanoseconds>::min();

} // namespace

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
    m_waitsFor.assign(static_cast<std::size_t>(devices), nullptr);
    if (start != nullptr) {
        start->resize(static_cast<std::size_t>(devices));
        for (int d = 0; d < devices; ++d)
            (*start)[static_cast<std::size_t>(d)].resize(lanes.lanes[static_cast<std::size_t>(d)].size());
    }

    // Ends of a leg, device by device; a microbatch that is not done yet has none.
    for (auto& ends : m_end)
        std::fill(ends.begin(), ends.end(), notDone);

    // A device goes on until it waits for a neighbour; sweeps down and up the V wake it again.
    const auto advance = [&](int device) {
        const auto d = static_cast<std::size_t>(device);
        if (m_waitsFor[d] != nullptr && *m_waitsFor[d] == notDone)
            return false;
        m_waitsFor[d] = nullptr;
        const std::uint8_t* lane = lanes.lanes[d].data();
        const std::size_t size = lanes.lanes[d].size();
        std::array<int, vPasses> count = m_count[d];
        Nanoseconds free = m_free[d];
        const Nanoseconds duration[] = {times[0][d], times[1][d], times[2][d], times[3][d], times[4][d], times[5][d]};
        // What a leg waits for: the same leg at a neighbour, or the leg before it here where the V turns.
        const auto at = [&](std::uint8_t leg, int owner) { return m_end[leg].data() + static_cast<std::size_t>(owner) * microbatches; };
        const Nanoseconds* source[] = {device > 0 ? at(forwardFirst, device - 1) : nullptr,
                                       device < last ? at(forwardBack, device + 1) : at(forwardFirst, device),
                                       device > 0 ? at(gradientFirst, device - 1) : at(forwardBack, device),
                                       device < last ? at(gradientBack, device + 1) : at(gradientFirst, device),
                                       at(gradientFirst, device), at(gradientBack, device)};
        const Nanoseconds fromAbove = device > 0 ? transfer : 0, fromBelow = device < last ? transfer : 0;
        const Nanoseconds delay[] = {fromAbove, fromBelow, fromAbove, fromBelow, 0, 0};
        std::size_t i = m_next[d];
        for (; i < size; ++i) {
            const std::uint8_t pass = lane[i];
            const auto m = static_cast<std::size_t>(count[pass]);
            if (m >= microbatches)
                break;
            Nanoseconds from = free;
            if (source[pass] != nullptr) {
                const Nanoseconds ready = source[pass][m];
                if (ready == notDone) {
                    m_waitsFor[d] = &source[pass][m];
                    break;
                }
                from = std::max(from, ready + delay[pass]);
            }
            if (i == 0)
                m_first[d] = from;
            if (start != nullptr)
                (*start)[d][i] = static_cast<int>(from);
            free = from + duration[pass];
            if (pass <= gradientBack)
                m_end[pass][d * microbatches + m] = free;
            ++count[pass];
        }
        const bool moved = i != m_next[d];
        m_next[d] = i;
        m_count[d] = count;
        m_free[d] = free;
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
