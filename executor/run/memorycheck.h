// SPDX-License-Identifier: GPL-3.0-or-later
// What every device of a run would hold, for those who ask before there is a run: `check` and `predict` say the same
// bytes in the same words as `run` does, and hold them against the memory that the design's devices have.
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
    std::vector<HeldMemory> memory; ///< per device, or member; empty: it does not run so
    std::string reason;             ///< why it is empty
    Diagnostics found;              ///< an error for every device that would hold more than the design says it has
};
/// Of the run that these options ask for; what keeps it from running is the reason.
MemoryCheck checkMemory(const Design& design, const RunOptions& options);

/// As keys of a JSON object: "predicted_allocated_bytes", and in "kept_bytes" what is held beside the buffers.
void addHeldMemory(JsonValue& json, std::span<const HeldMemory> devices);

/// "33 MiB for their maths, 1.2 MiB for links": the largest value over devices of each kind of memory outside the
/// buffers, without kinds that are 0.
std::string keptParts(std::span<const HeldMemory> devices);

} // namespace pipewright
