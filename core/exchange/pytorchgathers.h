// SPDX-License-Identifier: GPL-3.0-or-later
// What PyTorch does with parameters that copies share out (FSDP) when a file holds computations alone: it then places
// the gathers itself. A rank keeps as many of the stages that it needs next gathered as its schedule was told
// (max_active_stages, 3 where nobody says), and frees the others. Source: _add_unshard_reshard of
// torch/distributed/pipelining/schedules.py, whose rule is that of core/program/gatherplan.h.
#pragma once

#include "core/base/diagnostic.h"
#include "core/schedule/schedule.h"

#include <optional>

namespace pipewright {

inline constexpr int gatheredByPytorch = 3; ///< stages of a rank, by default

/// A warning where PyTorch would gather elsewhere than the schedule says, with what makes the two alike. Nothing where
/// they are alike, or parameters are not shared out. `schedule` is valid, of one replica. O(blocks x stages of a
/// device).
std::optional<Diagnostic> gatheredElsewhere(const Schedule& schedule);

} // namespace pipewright
