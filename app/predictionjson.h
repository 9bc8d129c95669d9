// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of predictions as JSON, where several commands print them or one file would be too long.
#pragma once

#include "app/command.h"

#include "core/predict/stagememory.h"

namespace pipewright::app {

/// The bytes of a device by what they are.
Json byKind(const DeviceMemory& memory);

/// A summary of the update blocks per stage, and each block in the order of stages and microbatches.
Json weightsToJson(const Program& program);

} // namespace pipewright::app
