// SPDX-License-Identifier: GPL-3.0-or-later
// Whether what the devices hold after a step is what the program says of it, in both directions.
#pragma once

#include "executor/sharding/programmember.h"

#include <memory>
#include <vector>

namespace pipewright::sharding {

/// Verifies every instruction of the last step against options.check and adds counts, errors and failures to `run`.
void checkProperties(const TensorGraph& graph, const ShardingProgram& program,
                     const std::vector<std::unique_ptr<ProgramMember>>& actors, const ShardingRunOptions& options,
                     ShardingRun& run);

} // namespace pipewright::sharding
