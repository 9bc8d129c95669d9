// SPDX-License-Identifier: GPL-3.0-or-later
// Communication::OneStream: the transfers of a device run one after the other, in the order of the global sequence. So
// a transfer waits for the one before it on its source and for the one before it on its destination, and for its value.
// What a device exchanges with copies of the pipeline that are only counted stands in its stream too.
// The evaluator follows these like any other dependencies.
#pragma once

#include "core/program/program.h"

namespace pipewright {

/// Adds these dependencies to the transfers and exchanges of a Program whose communication is OneStream; others stay as
/// they are. All of them lead from an earlier task to a later one, so nothing can wait in a circle. O(tasks).
void chainStreams(Program& program);

} // namespace pipewright
