// SPDX-License-Identifier: GPL-3.0-or-later
// A seeded permutation of the numbers below a size, without a table: a Feistel network over the next power of four; a
// result beyond the size goes through the network again (Black and Rogaway, "Ciphers with arbitrary finite domains",
// CT-RSA 2002). Expected O(1), since at least a quarter of the results is below the size.
#pragma once

#include <cstdint>

namespace pipewright {

class Shuffle {
public:
    Shuffle(std::uint64_t size, std::uint64_t seed);

    /// The place of a number; every place below the size is taken once.
    std::uint64_t at(std::uint64_t number) const;

private:
    std::uint64_t m_size, m_seed;
    unsigned m_halfBits = 0;
};

} // namespace pipewright
