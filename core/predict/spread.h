// SPDX-License-Identifier: GPL-3.0-or-later
// The distribution of the step time when block times vary: runs the predictor over sampled costs. With one seed a block
// has the same random factor in every schedule, so that schedules are compared under the same noise.
#pragma once

#include "core/design/costs.h"
#include "core/program/program.h"

#include <cstdint>
#include <optional>

namespace pipewright {

/// Spreads are standard deviations relative to the time, which stays the median.
struct SpreadOptions {
    double block = 0; ///< of every block independently
    /// Use the measured spread of blocks that have one.
    bool measured = false;
    double device = 0; ///< of every device: one factor for all its blocks in a step
    int samples = 400;
    std::uint64_t seed = 1;
    std::size_t tasks = 0; ///< limit on samples x tasks; reduces the samples, to 20 at least; 0: no limit
    bool operator==(const SpreadOptions&) const = default;
};

/// Of the step's time over the samples.
struct StepSpread {
    Nanoseconds median = 0, p95 = 0;
    bool operator==(const StepSpread&) const = default;
};

/// The criterion for ranking schedules: makespan, or one of the two times under noise.
enum class RankBy : std::uint8_t { Makespan, Median, P95 };
constexpr Nanoseconds rankedTime(RankBy by, Nanoseconds makespan, const StepSpread& noisy)
{
    switch (by) {
    case RankBy::Makespan: return makespan;
    case RankBy::Median: return noisy.median;
    case RankBy::P95: return noisy.p95;
    }
    return makespan;
}

/// The spread of blocks when it is neither measured nor given.
inline constexpr double usualSpread = 0.05;
/// The user's choice of noise.
struct NoiseChoice {
    std::optional<double> block; ///< none: measured spread, or else usualSpread
    double device = 0;
    bool operator==(const NoiseChoice&) const = default;
};
/// The noise for interactive use in the designer, with a limited number of samples.
SpreadOptions shownNoise(const Costs& costs, const NoiseChoice& choice = {});

/// Deterministic. O(samples x tasks).
StepSpread spreadOfStep(const Program& program, const Costs& costs, const SpreadOptions& options);

} // namespace pipewright
