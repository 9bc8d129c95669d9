// SPDX-License-Identifier: GPL-3.0-or-later
// First half of compile: the global task sequence. Walks the blocks in global order, gives each the
// buffers it reads and writes, and puts a transfer behind every value that another device needs: one per
// (value, device), values of one block for one device grouped, held until the next later start time and
// then in the order of their first consumers (JaxPP's rule).
#pragma once

#include "core/program/compile.h"
#include "core/schedule/weightplan.h"

namespace pipewright {

/// Fills everything in the Program but its devices' instruction lists.
void inferTransfers(Program& program, const Schedule& schedule, const OrderGraph& graph, const OrderRun& run,
                    const std::vector<Nanoseconds>& earliestStart, const Costs& costs, const Dataflow& dataflow,
                    const WeightPlan& weights, const CompileOptions& options);

} // namespace pipewright
