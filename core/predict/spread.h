// SPDX-License-Identifier: GPL-3.0-or-later
// How long a step takes when blocks do not take the same time twice: the predictor, run over sampled costs. A block has
// the same luck in every schedule of one seed, so that two schedules are compared under the same noise.
#pragma once

#include "core/design/costs.h"
#include "core/program/program.h"

#include <cstdint>
#include <optional>

namespace pipewright {

/// Spreads are standard deviations relative to the time, which stays the median.
struct SpreadOptions {
    double block = 0; ///< of every block by itself
    /// Of blocks whose costs say by how much they vary, that instead.
    bool measured = false;
    double device = 0; ///< of every device, all of whose blocks are as much slower or faster in a step
    int samples = 400;
    std::uint64_t seed = 1;
    std::size_t tasks = 0; ///< of a long program fewer samples, at least 20, so that about so many tasks run; 0: all
    bool operator==(const SpreadOptions&) const = default;
};

/// Of the step's time over the samples.
struct StepSpread {
    Nanoseconds median = 0, p95 = 0;
    bool operator==(const StepSpread&) const = default;
};

/// What schedules are ranked by: their makespan, or one of the two times under noise.
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

/// By how much blocks vary where nobody measured it and nobody said it.
inline constexpr double usualSpread = 0.05;
/// What a person wants to see steps under.
struct NoiseChoice {
    std::optional<double> block; ///< none: what was measured, or else the usual
    double device = 0;
    bool operator==(const NoiseChoice&) const = default;
};
/// The noise that the designer shows steps under, while somebody waits.
SpreadOptions shownNoise(const Costs& costs, const NoiseChoice& choice = {});

/// The same for the same arguments. O(samples x tasks).
StepSpread spreadOfStep(const Program& program, const Costs& costs, const SpreadOptions& options);

} // namespace pipewright
