// SPDX-License-Identifier: GPL-3.0-or-later
// Whether what the devices hold after a step is what the program says of it, in both directions.
#pragma once

#include "executor/spmd/deviceactor.h"

#include <memory>
#include <vector>

namespace pipewright::spmd {

/// Verifies every instruction of the last step against options.check and adds counts, errors and failures to `run`.
void checkProperties(const TensorGraph& graph, const SpmdProgram& program,
                     const std::vector<std::unique_ptr<DeviceActor>>& actors, const SpmdRunOptions& options,
                     SpmdRun& run);

} // namespace pipewright::spmd
