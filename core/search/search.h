// SPDX-License-Identifier: GPL-3.0-or-later
// The best order of a design's blocks under a memory limit, and how far from the best possible it can be at most.
// A portfolio in threads: the published families that share the placement, rules tried in many variants
// (listscheduling.h), local search among orders (lanesearch.h), all orders of small designs (exactsearch.h) and, where
// it was built in, constraint programming (constraintsearch.h), of designs that are too large for it by parts
// (partsproof.h); they share the best schedule found so far, and all end when it meets a lower bound. Every schedule
// that counts was predicted exactly, memory included. That prediction is the longest stretch that a stop does not end:
// some 0.7 us per block, 33 ms for the 49,152 of 32 devices, two chunks each and 256 microbatches; before the threads
// begin, model and bounds take 24 ms there.
#pragma once

#include "core/base/diagnostic.h"
#include "core/search/bounds.h"
#include "core/search/searchmodel.h"

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace pipewright {

struct SearchPoint {
    double seconds = 0; ///< since the search began
    Nanoseconds value = 0;
    std::string source; ///< who found it: "zb-h1", "rules", "local search", "repetition", "constraint programming"
};

struct SearchProgress {
    double seconds = 0;
    Nanoseconds best = 0; ///< 0: none yet
    Nanoseconds bound = 0;
};

struct SearchOptions {
    SearchObjective objective = SearchObjective::Makespan;
    MemoryLimit limit;
    std::chrono::milliseconds timeLimit{10'000}; ///< 0: none
    int rounds = 0;                              ///< of every thread, of a fixed amount of work each; 0: no limit
    int threads = 1; ///< with one thread and `rounds`, the result follows from the seed alone
    std::uint64_t seed = 1;
    std::vector<Block> locked;   ///< placed blocks that keep their order among each other
    std::vector<Schedule> hints; ///< schedules to start from, beside the design's own
    std::stop_token stop;
    std::function<void(const SearchProgress&)>
        progress; ///< from the calling thread, some forty times a second; may ask for a stop
};

struct SearchResult {
    Schedule schedule;     ///< family "custom", unless the best is the design's own
    Nanoseconds value = 0; ///< of the objective, as predict() gives it
    SearchBound bound;
    std::vector<SearchBound> bounds; ///< all kinds, highest first
    double gap = 0;                  ///< (value - bound) / value
    bool proved = false;             ///< no schedule is better
    bool cancelled = false;
    std::vector<SearchPoint> history;
};

/// Throws Error: a design that cannot be searched, a limit that no schedule can meet (with the smallest set of what
/// conflicts), or no schedule found within the limits.
SearchResult search(const Design& design, const SearchOptions& options);

} // namespace pipewright
