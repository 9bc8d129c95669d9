// SPDX-License-Identifier: GPL-3.0-or-later
// Random numbers as a function of (seed, name, counter): no state, so a value does not depend on what was drawn before
// it, on which device it is drawn, or on how the model is divided into stages. The mixing is the finaliser of
// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#pragma once

#include <cstdint>
#include <string_view>

namespace pipewright {

class CounterRandom {
public:
    CounterRandom(std::uint64_t seed, std::string_view name);

    std::uint64_t bits(std::uint64_t counter) const; ///< uniform over all 64-bit values
    double uniform(std::uint64_t counter) const;     ///< in (0, 1), 53 bits
    double normal(std::uint64_t counter) const;      ///< standard normal (Box and Muller 1958)

private:
    std::uint64_t m_key;
};

} // namespace pipewright
