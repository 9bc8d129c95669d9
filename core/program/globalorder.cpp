// SPDX-License-Identifier: GPL-3.0-or-later
// Sorts blocks by start time: a radix sort, least significant digit first, over starts divided by their common unit,
// so that few digits are needed. O(blocks x digits), one digit for starts below 2^13 units.
#include "core/program/globalorder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <span>
#include <utility>

namespace pipewright {

namespace {

constexpr unsigned mostDigitBits = 13; ///< a digit's counts stay in the nearest cache

/// The likely common divisor of all starts, taken from the first 4,096. 1 when there is none.
Nanoseconds unitOf(const OrderRun& run)
{
    constexpr std::size_t looked = 4'096;
    Nanoseconds unit = 0;
    for (std::size_t i = 0; i < std::min(looked, run.start.size()); ++i)
        unit = std::gcd(unit, run.start[i]);
    return std::max<Nanoseconds>(unit, 1);
}

/// Quotients by multiplication; exact for multiples below 2^52, whose quotient is the nearest whole number.
class Divisor {
public:
    explicit Divisor(Nanoseconds unit) : m_whole(unit == 1), m_inverse(1.0 / static_cast<double>(unit)) {}
    Nanoseconds operator()(Nanoseconds time) const
    {
        return m_whole ? time : static_cast<Nanoseconds>(static_cast<double>(time) * m_inverse + 0.5);
    }

private:
    bool m_whole;
    double m_inverse;
};

/// Radix sort by starts in `unit`s, least significant digit first, which keeps the order among equal starts. `Start` is
/// the narrowest type that holds them, since the sort is limited by memory traffic.
template<typename Start>
GlobalOrder sortedBy(const OrderRun& run, Nanoseconds unit, std::uint64_t latest)
{
    const auto bits = std::max(1u, static_cast<unsigned>(std::bit_width(latest)));
    const unsigned digits = (bits + mostDigitBits - 1) / mostDigitBits;
    const unsigned digitBits = (bits + digits - 1) / digits;
    const std::size_t buckets = std::size_t{1} << digitBits;
    struct Keyed {
        Start start;
        BlockIndex block;
    };
    std::vector<Keyed> keyed;
    keyed.reserve(run.sequence.size());
    const Divisor divide(unit);
    const auto add = [&](BlockIndex block) { keyed.push_back({static_cast<Start>(divide(run.start[block])), block}); };
    // Among equal starts first the blocks that take no time, as they ran, since one may wait for another; then the
    // others, device after device.
    const auto takesTime = [&run](BlockIndex block) { return run.end[block] != run.start[block]; };
    std::size_t timeless = 0;
    for (BlockIndex block = 0; block < run.start.size(); ++block)
        timeless += !takesTime(block);
    for (auto block = run.sequence.begin(); timeless > 0; ++block)
        if (!takesTime(*block)) {
            add(*block);
            --timeless;
        }
    for (BlockIndex block = 0; block < run.start.size(); ++block)
        if (takesTime(block))
            add(block);
    std::array<std::uint32_t, std::size_t{1} << mostDigitBits> counts;
    const std::span<std::uint32_t> position(counts.data(), buckets);
    std::vector<Keyed> sorted(keyed.size());
    for (unsigned shift = 0; shift < bits; shift += digitBits) {
        std::fill(position.begin(), position.end(), 0);
        for (const Keyed& k : keyed)
            ++position[(k.start >> shift) & (buckets - 1)];
        std::uint32_t sum = 0;
        for (std::uint32_t& p : position)
            sum += std::exchange(p, sum);
        for (const Keyed& k : keyed)
            sorted[position[(k.start >> shift) & (buckets - 1)]++] = k;
        keyed.swap(sorted);
    }
    GlobalOrder order;
    order.blocks.reserve(keyed.size());
    for (std::uint32_t i = 0; i < keyed.size(); ++i) {
        if (i == 0 || keyed[i].start != keyed[i - 1].start) {
            order.instants.push_back(i);
            order.starts.push_back(run.start[keyed[i].block]);
        }
        order.blocks.push_back(keyed[i].block);
    }
    order.instants.push_back(static_cast<std::uint32_t>(keyed.size()));
    return order;
}

} // namespace

GlobalOrder sortedByStart(const OrderRun& run)
{
    Nanoseconds unit = unitOf(run), latest = 0;
    const Divisor divide(unit);
    bool allMultiples = true;
    for (const Nanoseconds start : run.start) {
        latest = std::max(latest, start);
        allMultiples &= divide(start) * unit == start;
    }
    if (latest >= Nanoseconds{1} << 52 || !allMultiples)
        unit = 1;
    const auto last = static_cast<std::uint64_t>(latest / unit);
    if (last <= 0xffff'ffff)
        return sortedBy<std::uint32_t>(run, unit, last);
    return sortedBy<std::uint64_t>(run, unit, last);
}

} // namespace pipewright
