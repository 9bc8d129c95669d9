// SPDX-License-Identifier: GPL-3.0-or-later
// Times lanes by sweeps down and up the V: a device runs until it waits for a neighbour. Amortised O(passes).
#include "core/families/vlanes.h"

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

constexpr Nanoseconds notDone = std::numeric_limits<Nanoseconds>::min();

} // namespace

int VLanes::peak(int device) const
{
    static constexpr int more[] = {1, 1, 0, 0, -1, -1, 0}; // change of live activations, by pass
    int alive = 0, most = 0;
    for (const std::uint8_t pass : lanes[device]) {
        alive += more[pass];
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
        blocks.reserve(lanes[d].size());
        std::array<int, vPasses> next{};
        for (const std::uint8_t pass : lanes[d]) {
            const bool own = pass == forwardFirst || pass == gradientBack || pass == weightBack;
            blocks.push_back({op[pass], own ? d : 2 * devices - 1 - d, next[pass]++});
        }
    }
    return order;
}

VTimes unitTimes(int devices)
{
    VTimes times;
    times.fill(std::vector<Nanoseconds>(devices, 1));
    return times;
}

std::optional<Nanoseconds> VClock::run(const VLanes& lanes, const VTimes& times, Nanoseconds transfer,
                                       std::vector<std::vector<int>>* start)
{
    const int devices = lanes.devices, last = devices - 1;
    const std::size_t microbatches = lanes.microbatches;
    // Ends of a leg, device by device; a microbatch that is not done yet has none.
    for (auto& ends : m_end)
        ends.assign(devices * microbatches, notDone);
    if (start != nullptr)
        start->resize(static_cast<std::size_t>(devices));
    m_devices.resize(devices);
    for (int i = 0; i < devices; ++i) {
        // A leg depends on the same leg of a neighbour or, where the V turns, on the previous leg of this device.
        const auto at = [&](std::uint8_t leg, int owner) { return m_end[leg].data() + owner * microbatches; };
        const bool top = i == 0, turn = i == last;
        Device& device = m_devices[i];
        device = {};
        device.source = {top ? nullptr : at(forwardFirst, i - 1),
                         turn ? at(forwardFirst, i) : at(forwardBack, i + 1),
                         top ? at(forwardBack, i) : at(gradientFirst, i - 1),
                         turn ? at(gradientFirst, i) : at(gradientBack, i + 1),
                         at(gradientFirst, i),
                         at(gradientBack, i)};
        const Nanoseconds fromAbove = top ? 0 : transfer, fromBelow = turn ? 0 : transfer;
        device.delay = {fromAbove, fromBelow, fromAbove, fromBelow, 0, 0};
        for (std::uint8_t pass = 0; pass < vPasses; ++pass)
            device.duration[pass] = times[pass][i];
        for (std::uint8_t leg = 0; leg <= gradientBack; ++leg)
            device.end[leg] = at(leg, i);
        if (start != nullptr)
            (*start)[i].resize(lanes.lanes[i].size());
    }

    // A device runs until it waits for a neighbour; sweeps down and up the V resume it.
    const auto advance = [&](int number) {
        Device& device = m_devices[number];
        if (device.waitsFor != nullptr && *device.waitsFor == notDone)
            return false;
        device.waitsFor = nullptr;
        const std::size_t begin = device.next, size = lanes.lanes[number].size();
        std::size_t i = begin;
        Nanoseconds free = device.free;
        const std::uint8_t* const lane = lanes.lanes[number].data();
        int* const starts = start != nullptr ? (*start)[number].data() : nullptr;
        for (; i < size; ++i) {
            const std::uint8_t pass = lane[i];
            const std::size_t m = device.count[pass];
            if (m >= microbatches)
                break;
            Nanoseconds from = free;
            if (const Nanoseconds* const source = device.source[pass]; source != nullptr) {
                const Nanoseconds ready = source[m];
                if (ready == notDone) {
                    device.waitsFor = &source[m];
                    break;
                }
                from = std::max(from, ready + device.delay[pass]);
            }
            if (i == 0)
                device.first = from;
            if (starts != nullptr)
                starts[i] = static_cast<int>(from);
            free = from + device.duration[pass];
            if (pass <= gradientBack)
                device.end[pass][m] = free;
            ++device.count[pass];
        }
        device.next = i;
        device.free = free;
        return i != begin;
    };
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < devices; ++d)
            moved |= advance(d);
        for (int d = last; d-- > 0;)
            moved |= advance(d);
    }
    Nanoseconds span = 0;
    for (std::size_t d = 0; d < m_devices.size(); ++d) {
        if (m_devices[d].next < lanes.lanes[d].size())
            return {};
        span = std::max(span, m_devices[d].free - m_devices[d].first);
    }
    return span;
}

} // namespace pipewright
