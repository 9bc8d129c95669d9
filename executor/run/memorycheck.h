// SPDX-License-Identifier: GPL-3.0-or-later
// The memory that every device of a run would hold, computed without a run. `check` and `predict` report the same bytes
// in the same words as `run`, and compare them with the memory that the design gives to its devices.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "executor/run/run.h"

#include <span>
#include <string>
#include <vector>

namespace pipewright {

class JsonValue;

struct MemoryCheck {
    std::vector<HeldMemory> memory; ///< per device, or member; empty: the design does not run with these options
    std::string reason;             ///< why it is empty
    Diagnostics found;              ///< an error for every device that would hold more than the design says it has
};
/// For a run with these options; if it cannot run, `reason` says why.
MemoryCheck checkMemory(const Design& design, const RunOptions& options);

/// Adds the keys "predicted_allocated_bytes" and "kept_bytes" (memory beyond the peak of the buffers) to a JSON object.
void addHeldMemory(JsonValue& json, std::span<const HeldMemory> devices);

/// "33 MiB for their maths, 1.2 MiB for links": the largest value over devices of each kind of memory outside the
/// buffers, without kinds that are 0.
std::string keptParts(std::span<const HeldMemory> devices);

} // namespace pipewright
