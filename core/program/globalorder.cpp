// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/globalorder.h"

#include <array>
#include <bit>
#include <utility>

namespace pipewright {

std::vector<BlockIndex> sortedByStart(const OrderRun& run)
{
    constexpr unsigned digitBits = 11;
    constexpr std::size_t buckets = std::size_t{1} << digitBits;
    struct Keyed {
        std::uint64_t start;
        BlockIndex block;
    };
    std::uint64_t latest = 0;
    std::vector<Keyed> keyed, sorted(run.sequence.size());
    keyed.reserve(run.sequence.size());
    for (const BlockIndex block : run.sequence) {
        const auto start = static_cast<std::uint64_t>(run.start[block]);
        latest |= start;
        keyed.push_back({start, block});
    }
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

} // namespace pipewright
