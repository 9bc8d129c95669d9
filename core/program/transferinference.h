// SPDX-License-Identifier: GPL-3.0-or-later
// Transfer inference, the first half of compile: transfers follow from the data. Walks the blocks in global
// order, gives each the buffers it reads and writes, and inserts a transfer for every value that another device
// needs: one per value and receiving device; values of one block for one device share a transfer. A transfer is
// placed before the next later start time; those placed together go in the order of their first consumers
// (JaxPP's rule, arXiv 2412.14374).
#pragma once

#include "core/program/compile.h"
#include "core/program/globalorder.h"
#include "core/program/offloadplan.h"
#include "core/program/replicasums.h"
#include "core/schedule/weightplan.h"

namespace pipewright {

/// Everything that is decided from the block times, which the Program itself does not keep.
struct StepPlan {
    GlobalOrder order;
    std::vector<Nanoseconds> ends; ///< per block; only where a transfer holds up others
    OffloadPlan offload;
    std::vector<PlannedReplicaSum> sums;
};

/// Fills everything in the Program but its devices' instruction lists.
void inferTransfers(Program& program, const Schedule& schedule, const OrderGraph& graph, StepPlan plan,
                    const std::vector<Nanoseconds>& earliestStart, const Costs& costs, const Dataflow& dataflow,
                    const WeightPlan& weights, const CompileOptions& options);

} // namespace pipewright
