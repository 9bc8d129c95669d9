// SPDX-License-Identifier: GPL-3.0-or-later
// Rotary positions (Su et al., arXiv 2104.09864): pairs of a query's or key's values are turned by an angle that grows
// with the token's position, so that their product depends on the distance alone. The gradient is turned back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

namespace pipewright::kernels {

enum class RotaryScaling : std::int32_t { None, Linear, Llama3, Yarn };

/// Radians per token of each pair, with the scaling of published models for longer sequences.
struct RotaryFrequencies {
    double base;
    RotaryScaling scaling;
    double factor, low, high, original;
};

/// The frequency of pair `pair` of `size` values: base^(-2 pair / size), then
///   Linear  divided by factor;
///   Llama3  divided where the wavelength is above original / low, kept where below original / high, between them
///           blended linearly in original / wavelength (Llama 3.1's rope_scaling);
///   Yarn    kept for pairs that make more than `high` turns over the original length, divided below `low` turns,
///           blended linearly in the pair's number between (Peng et al., arXiv 2309.00071, section 3.2).
inline double rotaryFrequency(const RotaryFrequencies& of, int pair, int size)
{
    constexpr double turn = 2 * std::numbers::pi;
    const double plain = std::pow(of.base, -2.0 * pair / size);
    switch (of.scaling) {
    case RotaryScaling::None: return plain;
    case RotaryScaling::Linear: return plain / of.factor;
    case RotaryScaling::Llama3: {
        const double turns = of.original * plain / turn;
        const double kept = std::clamp((turns - of.low) / (of.high - of.low), 0.0, 1.0);
        return (1 - kept) * plain / of.factor + kept * plain;
    }
    case RotaryScaling::Yarn: {
        const auto pairOf = [&](double turns) {
            return size * std::log(of.original / (turns * turn)) / (2 * std::log(of.base));
        };
        const double first = std::max(std::floor(pairOf(of.high)), 0.0);
        const double last = std::min(std::ceil(pairOf(of.low)), size - 1.0);
        const double kept = 1 - std::clamp((pair - first) / std::max(last - first, 0.001), 0.0, 1.0);
        return (1 - kept) * plain / of.factor + kept * plain;
    }
    }
    return plain;
}

inline constexpr int mostRotaryPairs = 512;

/// Rotates `size` values of every head, from index `offset` on, in place. values[tokens][heads · headSize]; tokens are
/// sequences of `length`, which begin at position `first`. Pair i is (i, i + size/2) as in Llama, or (2i, 2i + 1). A
/// token's values are rotated by position · frequency; with `backwards` in the opposite direction.
struct Rotate {
    RotaryFrequencies frequencies;
    int length, first, heads, headSize, offset, size;
    bool neighbours, backwards;
    std::span<float> values;
};

} // namespace pipewright::kernels
