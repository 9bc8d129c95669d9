// SPDX-License-Identifier: GPL-3.0-or-later
// The cheapest program for given ratios: A* over the states of searchspace.h (arXiv 2401.05965). A state is dropped
// when another of the same position costs no more, holds all its relations and uses no more memory. A beam search runs
// first and gives an upper bound to prune by. Where the cheapest program exceeds memory, a price per byte finds good
// programs and a bound quickly; then an exact search keeps states that differ in memory. Deterministic unless the time
// limit ends it. An expansion is linear in the moves of one node; a chain of equal layers has few states per layer.
#pragma once

#include "core/sharding/searchspace.h"

#include <chrono>
#include <optional>
#include <stop_token>

namespace pipewright::sharding {

/// When the search ends with its best result so far.
struct Deadline {
    std::optional<std::chrono::steady_clock::time_point> time{};
    std::stop_token stop{}; ///< requested when the result is no longer needed
    bool passed() const { return stop.stop_requested() || (time && std::chrono::steady_clock::now() > *time); }
};

struct SynthesisOptions {
    std::int64_t maxExpansions = 1'000'000;
    Deadline deadline{};
    int programs = 1; ///< number of programs wanted; n of them cost n times the states
};

struct Candidate {
    ShardingProgram program;
    double cost = 0; ///< seconds
};

struct SynthesisResult {
    std::vector<Candidate> programs; ///< cheapest first; empty: none was found within the memory
    double bound = 0;                ///< no program within memory at these ratios costs less
    bool proved = false;             ///< the first one is optimal, or there is none
    std::int64_t expansions = 0;
    /// (cost − bound) / cost of the first; 0 when proved.
    double gap() const;
};

/// Exact unless a limit ends the search. Throws Error as SearchSpace does.
SynthesisResult synthesise(const Theory& theory, const SynthesisOptions& options = {});

/// A program with the least peak memory that prices alone find; tells how much is needed when nothing fits.
ShardingProgram leanestProgram(const Theory& theory);

} // namespace pipewright::sharding
