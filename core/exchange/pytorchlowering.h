// SPDX-License-Identifier: GPL-3.0-or-later
// Where PyTorch puts the sends and receives of a file of computations. It takes the ranks in turn: each appends its
// next action when what it needs has been made, a computation is followed by the send of its value, and in that moment
// the receive is appended to the other rank's list, however early that is. Actions without values take a turn of their
// own: parameters that are gathered and let go of, reductions and the waits for them. The rule is that of PyTorch 2.15
// (_PipelineScheduleRuntime with its defaults); tests/torch compares it with PyTorch itself.
#pragma once

#include "core/exchange/pytorchcomms.h"

namespace pipewright {

/// The computations of the schedule, one replica, with sends and receives where PyTorch puts them. The schedule must be
/// valid. O(blocks x chunks).
PytorchRows loweredByPytorch(const Schedule& schedule);

} // namespace pipewright
