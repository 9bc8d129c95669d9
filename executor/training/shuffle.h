// SPDX-License-Identifier: GPL-3.0-or-later
// A permutation of the numbers below a size, by a seed, without a table of them: a Feistel network over the next power
// of four, whose results beyond the size pass through it again (Black and Rogaway, "Ciphers with arbitrary finite
// domains", CT-RSA 2002). Expected O(1), since at least a quarter of the results is within.
#pragma once

#include <cstdint>

namespace pipewright {

class Shuffle {
public:
    Shuffle(std::uint64_t size, std::uint64_t seed);

    /// Where the number stands; every number below the size is somebody's.
    std::uint64_t at(std::uint64_t number) const;

private:
    std::uint64_t m_size, m_seed;
    unsigned m_halfBits = 0;
};

} // namespace pipewright
