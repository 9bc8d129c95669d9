// SPDX-License-Identifier: GPL-3.0-or-later
// The cheapest program for given ratios: A* over the states of searchspace.h. A state that costs no less than
// another of the same position which holds all that it holds (and keeps no less memory) is dropped. A beam
// search comes first, so that there is a program, and something to prune by, from the start.
//
// Where devices have memory limits that the cheapest program breaks, memory is first given a price, which
// finds good programs and a bound quickly; then the search keeps states that differ in memory apart and is
// exact. Every step is deterministic unless the time limit strikes. Each expansion is linear in the number of
// moves of one node; a chain of equal layers has the same few states at each layer.
#pragma once

#include "core/sharding/searchspace.h"

#include <chrono>
#include <optional>
#include <stop_token>

namespace pipewright::sharding {

/// From when on what there is must do.
struct Deadline {
    std::optional<std::chrono::steady_clock::time_point> time{};
    std::stop_token stop{}; ///< of who no longer waits for the answer
    bool passed() const { return stop.stop_requested() || (time && std::chrono::steady_clock::now() > *time); }
};

struct SynthesisOptions {
    std::int64_t maxExpansions = 1'000'000;
    Deadline deadline{};
    int programs = 1; ///< so many best ones; more than one costs as many times more states
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

/// Exact unless a limit strikes. Throws Error as SearchSpace does.
SynthesisResult synthesise(const Theory& theory, const SynthesisOptions& options = {});

/// The program that fills the fullest device least, as far as the price of memory alone leads; for saying what
/// is needed when nothing fits.
ShardingProgram leanestProgram(const Theory& theory);

} // namespace pipewright::sharding
