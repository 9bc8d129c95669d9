// SPDX-License-Identifier: GPL-3.0-or-later
// The best order of a design's blocks under a memory limit, and its largest possible distance from the optimum. Threads
// with a portfolio of methods share the best schedule: published families with the same placement, list scheduling by
// rules (listscheduling.h), local search (lanesearch.h, windowsearch.h), exhaustive search of small designs
// (exactsearch.h) and, where built in, constraint programming (constraintsearch.h), on parts of a large design
// (partsproof.h). The design's own order comes first, so that the result is never worse. All stop when the best
// schedule meets a lower bound. Every schedule that counts is predicted exactly, memory included. A stop does not
// interrupt a prediction: about 0.7 us per block, 33 ms for 49,152 blocks (32 devices, 2 chunks, 256 microbatches); the
// model and bounds before the threads start take 24 ms there.
#pragma once

#include "core/base/diagnostic.h"
#include "core/predict/spread.h"
#include "core/search/bounds.h"
#include "core/search/searchmodel.h"

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace pipewright {

struct SearchPoint {
    double seconds = 0; ///< since the search began
    Nanoseconds value = 0;
    std::string source; ///< the method that found it: "as it was", "zb-h1", "rules", "local search", "repetition",
                        ///< "constraint programming"
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
    int rounds = 0;                              ///< per thread, each a fixed amount of work; 0: no limit
    int threads = 1; ///< with one thread and `rounds`, the result follows from the seed alone
    std::uint64_t seed = 1;
    std::vector<Block> locked;       ///< placed blocks that keep their order among each other
    std::vector<Schedule> hints;     ///< schedules to start from, beside the design's own …
    std::string given = "as it was"; ///< … which is tried first: its name in the history
    /// If set: of all schedules that were the best at some time of the search, the best under this noise is returned.
    std::optional<SpreadOptions> noise;
    RankBy by = RankBy::Makespan;
    std::stop_token stop;
    std::function<void(const SearchProgress&)>
        progress; ///< called some forty times a second by the calling thread; may request a stop
};

struct SearchResult {
    Schedule schedule;     ///< family "custom", unless it is the design's own order
    Nanoseconds value = 0; ///< of the objective, as predict() gives it
    StepSpread noisy;      ///< of the same schedule, with SearchOptions::noise
    SearchBound bound;
    std::vector<SearchBound> bounds; ///< all kinds, highest first
    double gap = 0;                  ///< (value - bound) / value
    bool proved = false;             ///< no order of these blocks that keeps the locks and the limit is better
    std::string unproved;            ///< why meeting the bound proves nothing (modelled.h); empty: it does
    bool cancelled = false;
    std::vector<SearchPoint> history;
};

/// Throws Error: a design that cannot be searched, a limit that no schedule can meet (with the smallest conflicting
/// set), or no schedule found within the limits.
SearchResult search(const Design& design, const SearchOptions& options);

} // namespace pipewright
