// SPDX-License-Identifier: GPL-3.0-or-later
// An explanation (traces/analysis/explanation.h) as text and as JSON, for `explain` and `compare`. Texts use the
// designer's names for devices, JSON their numbers.
#pragma once

#include "app/command.h"
#include "traces/analysis/explanation.h"
#include "traces/analysis/gpugaps.h"

namespace pipewright::app {

/// "causes": largest contribution to the makespan first.
Json causesToJson(const Program& program, const Explanation& explanation);
Json toJson(const Program& program, const Explanation& explanation);

/// The `most` largest causes, one line each.
void printCauses(const Design& design, const Program& program, const Explanation& explanation, std::size_t most);
void print(const Design& design, const Program& program, const Explanation& explanation);

/// What each device's GPU did and waited for; devices without a record are left out.
Json toJson(const std::vector<GpuGaps>& gaps);
void print(const Design& design, const std::vector<GpuGaps>& gaps);

std::string signedDuration(Nanoseconds value); ///< "+1.2 ms"

} // namespace pipewright::app
