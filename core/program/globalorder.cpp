// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/globalorder.h"

#include <array>
#include <bit>
#include <utility>

namespace pipewright {

namespace {

/// Radix sort, least significant digit first, which keeps the order among equal starts. `Start` is as narrow as
/// the starts allow: what it takes is the moving of memory.
template<typename Start>
std::vector<BlockIndex> sortedBy(const OrderRun& run, std::uint64_t latest)
{
    constexpr unsigned digitBits = 11;
    constexpr std::size_t buckets = std::size_t{1} << digitBits;
    struct Keyed {
        Start start;
        BlockIndex block;
    };
    std::vector<Keyed> keyed, sorted(run.sequence.size());
    keyed.reserve(run.sequence.size());
    for (const BlockIndex block : run.sequence)
        keyed.push_back({static_cast<Start>(run.start[block]), block});
    for (unsigned shift = 0; shift < static_cast<unsigned>(std::bit_width(latest)); shift += digitBits) {
        std::array<std::uint32_t, buckets> position{};
        for (const Keyed& k : keyed)
            ++position[(k.start >> shift) & (buckets - 1)];
        std::uint32_t sum = 0;
        for (std::uint32_t& p : position)
            sum += std::exchange(p, sum);
        for (const Keyed& k : keyed)
            sorted[position[(k.start >> shift) & (buckets - 1)]++] = k;
        keyed.swap(sorted);
    }
    std::vector<BlockIndex> order;
    order.reserve(keyed.size());
    for (const Keyed& k : keyed)
        order.push_back(k.block);
    return order;
}

} // namespace

std::vector<BlockIndex> sortedByStart(const OrderRun& run)
{
    std::uint64_t latest = 0;
    for (const Nanoseconds start : run.start)
        latest |= static_cast<std::uint64_t>(start);
    return latest <= 0xffff'ffff ? sortedBy<std::uint32_t>(run, latest) : sortedBy<std::uint64_t>(run, latest);
}

} // namespace pipewright
