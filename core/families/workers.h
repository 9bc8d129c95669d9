// SPDX-License-Identifier: GPL-3.0-or-later
// Data parallel training as a schedule: N workers, N stages, microbatch t N + i is worker i's of training step t,
// and each stage is updated once per training step. What the workers do at which time step is one table; where
// they do it is a layout.
#pragma once

#include "core/families/orders.h"

namespace pipewright {

/// When a pass of worker i on stage j in training step t runs, in time steps of one stage's pass
/// (arXiv 2403.08837, figure 1).
struct WorkerTimes {
    int workers = 1;
    bool cyclic = false; ///< each worker starts two time steps after the previous one; otherwise all at once
    std::int64_t forward(int worker, int stage, int step) const;
    std::int64_t backward(int worker, int stage, int step) const;
};

/// N: the number of workers, and of stages, that these devices make in this layout; 0 when they make none.
int workersOf(const FamilyParameters& p, bool cyclic);
/// How many devices the layout takes for N workers.
int devicesOf(WorkerLayout layout, int workers, bool cyclic);

Diagnostics checkWorkers(const FamilyParameters& p, bool cyclic);
Schedule makeWorkers(const FamilyParameters& p, WeightRule rule);

} // namespace pipewright
