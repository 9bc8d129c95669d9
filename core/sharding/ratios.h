// SPDX-License-Identifier: GPL-3.0-or-later
// The best sharding ratios for a given program, as a linear program (arXiv 2401.05965, section 5.1, with
// latencies and memory): variables are the share of every device in every segment and, for each charge, the
// time of its slowest device. Charges that differ only in size share one variable, so that a model of many
// equal layers gives a program of a few dozen rows.
#pragma once

#include "core/sharding/linearprogram.h"
#include "core/sharding/shardingprogram.h"

#include <optional>
#include <utility>
#include <vector>

namespace pipewright::sharding {

struct RatioProblem {
    struct Term { ///< weight times the largest of the lines
        std::vector<Line> lines;
        double weight = 1;
    };
    struct MemoryRow { ///< whole + sum over segments of split · share <= limit
        int device = 0;
        double whole = 0;
        std::vector<double> split; ///< per segment
        double limit = 0;
    };
    int segments = 1, devices = 1;
    std::vector<Term> terms;
    std::vector<MemoryRow> memory;
    std::vector<std::pair<int, int>> tied; ///< segments that have to be cut alike
};

/// Segments that pass pieces to each other without an exchange are tied to equal ratios. `untied`: not tied, to find
/// the optimum of each segment alone.
RatioProblem ratioProblemOf(const ShardingProgram& program, const TensorGraph& graph, const Machine& machine,
                            int segments, bool untied = false);

/// The variables: share of device d in segment s at s · devices + d, then one time per distinct term.
LinearProgram linearProgramOf(const RatioProblem& problem);

/// None when no ratios keep every device within its memory.
std::optional<Ratios> bestRatios(const RatioProblem& problem);

/// What the problem's terms add up to, in seconds.
double valueOf(const RatioProblem& problem, const Ratios& ratios);

} // namespace pipewright::sharding
