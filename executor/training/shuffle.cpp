// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/shuffle.h"

#include "executor/stage/counterrandom.h"

#include <bit>
#include <cassert>
#include <string>

namespace pipewright {

Shuffle::Shuffle(std::uint64_t size, std::uint64_t seed)
    : m_size(size), m_seed(seed), m_halfBits((unsigned(std::bit_width(size > 0 ? size - 1 : 0)) + 1) / 2)
{
}

std::uint64_t Shuffle::at(std::uint64_t number) const
{
    assert(number < m_size);
    constexpr int rounds = 4;
    const std::uint64_t mask = (std::uint64_t{1} << m_halfBits) - 1;
    if (m_halfBits == 0)
        return number; // the only number
    do {
        std::uint64_t left = number >> m_halfBits, right = number & mask;
        for (int round = 0; round < rounds; ++round) {
            const std::uint64_t mixed = CounterRandom(m_seed, "shuffle " + std::to_string(round)).bits(right) & mask;
            const std::uint64_t next = left ^ mixed;
            left = right;
            right = next;
        }
        number = left << m_halfBits | right;
    } while (number >= m_size);
    return number;
}

} // namespace pipewright
