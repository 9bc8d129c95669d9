// SPDX-License-Identifier: GPL-3.0-or-later
// SplitMix64's finaliser over a key made of seed and name, plus the counter: O(1) per value, no state (see the header).
#include "executor/stage/counterrandom.h"

#include <cmath>
#include <numbers>

namespace pipewright {
namespace {

constexpr std::uint64_t increment = 0x9e3779b97f4a7c15u; ///< 2^64 / golden ratio, odd

std::uint64_t mix(std::uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

} // namespace

CounterRandom::CounterRandom(std::uint64_t seed, std::string_view name) : m_key(mix(seed + increment))
{
    for (const char character : name)
        m_key = mix(m_key ^ std::uint64_t(static_cast<unsigned char>(character))) + increment;
}

std::uint64_t CounterRandom::bits(std::uint64_t counter) const
{
    return mix(m_key + (counter + 1) * increment);
}

double CounterRandom::uniform(std::uint64_t counter) const
{
    return (double(bits(counter) >> 11) + 0.5) * 0x1p-53;
}

double CounterRandom::normal(std::uint64_t counter) const
{
    const double radius = std::sqrt(-2 * std::log(uniform(2 * counter)));
    return radius * std::cos(2 * std::numbers::pi * uniform(2 * counter + 1));
}

} // namespace pipewright
