// SPDX-License-Identifier: GPL-3.0-or-later
// `shard --run` and `shard --calibrate`: run programs on the host or on GPUs and report the results.
#pragma once

#include "app/command.h"
#include "core/design/design.h"
#include "core/files/tensorgraphfile.h"
#include "executor/sharding/collectivetimes.h"
#include "executor/sharding/measuredstrategy.h"

#include <vector>

namespace pipewright::app {

struct ShardRun {
    sharding::SingleRun single;
    sharding::ShardingRun shared;                       ///< by the plan
    std::vector<sharding::MeasuredStrategy> strategies; ///< the plan, then the common strategies
    std::string backend;
    double gradientError = 0;
};

/// Runs the plan for its loss and gradients, then every strategy for its time: on the host at the rates of the file's
/// devices, on `backend` at its own speed. Throws Error.
ShardRun runPlan(const GraphFile& file, const sharding::Machine& machine, const sharding::ShardingPlan& plan,
                 const std::vector<sharding::Alternative>& common, int steps, Backend* backend);
Json toJson(const ShardRun& run);
void print(const ShardRun& run);

/// Measures as many of the backend's devices as the file's cluster has, and writes the file with the results.
void calibrateShares(GraphFile file, Backend& backend, const std::string& path, bool overwrite, bool json);

/// The same for a design whose stages are held by groups, on the host: rates while all members work at the same time,
/// as in a run, and the collectives of each group. Writes the design with them; costs from a formula are computed
/// again.
void calibrateGroups(const GraphFile& file, const Design& design, const std::string& path, bool overwrite, bool json);

} // namespace pipewright::app
