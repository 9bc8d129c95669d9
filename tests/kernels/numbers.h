// SPDX-License-Identifier: GPL-3.0-or-later
// What every kernel test needs: reproducible values, the distance between a result and its reference, and
// central finite differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace pipewright::test {

using Values = std::vector<double>;

/// Largest distances of a result from its reference, as parts of the largest value: of fp32, which keeps 6e-8 per
/// operation, from fp64, and of gradients from finite differences in fp64.
constexpr double tolerance = 2e-6, slopeTolerance = 1e-8;

/// The same `count` values in (-spread, spread) for the same seed, already rounded to fp32 so that the
/// fp32 and the fp64 side start from equal numbers.
inline Values someValues(std::size_t count, unsigned seed, double spread = 1)
{
    Values values(count);
    std::uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
    for (double& value : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = float(spread * (double(state >> 11) / double(1u << 26) / double(1u << 26) - 1));
    }
    return values;
}

inline std::vector<std::int32_t> someTokens(std::size_t count, int vocabulary, unsigned seed)
{
    std::vector<std::int32_t> tokens;
    for (const double value : someValues(count, seed))
        tokens.push_back(std::min(int((value + 1) / 2 * vocabulary), vocabulary - 1));
    return tokens;
}

inline std::vector<float> single(const Values& values)
{
    return {values.begin(), values.end()};
}

/// Largest difference relative to the largest reference value; infinite for different sizes or NaN.
template<class Number>
double distance(const std::vector<Number>& result, const Values& reference)
{
    if (result.size() != reference.size())
        return INFINITY;
    double worst = 0, largest = 1e-30;
    for (std::size_t i = 0; i < reference.size(); ++i) {
        const double difference = std::abs(double(result[i]) - reference[i]);
        if (!(difference < INFINITY))
            return INFINITY;
        worst = std::max(worst, difference);
        largest = std::max(largest, std::abs(reference[i]));
    }
    return worst / largest;
}

/// Sum over i of a[i] · b[i]: turns a tensor into a scalar whose gradient with respect to a is b.
inline double dot(const Values& a, const Values& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += a[i] * b[i];
    return sum;
}

/// The gradient of `loss` at `at` by central differences, error about step² · third derivative.
inline Values finiteDifferences(Values at, const std::function<double(const Values&)>& loss, double step = 1e-5)
{
    Values gradient(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
        const double value = at[i];
        at[i] = value + step;
        const double above = loss(at);
        at[i] = value - step;
        const double below = loss(at);
        at[i] = value;
        gradient[i] = (above - below) / (2 * step);
    }
    return gradient;
}

} // namespace pipewright::test
