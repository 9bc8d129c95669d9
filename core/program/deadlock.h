// SPDX-License-Identifier: GPL-3.0-or-later
// Can the communication of a Program hang? A send and its receive are one node (rendezvous: neither can
// end without the other); the order in which a device issues its instructions, and in which a channel
// carries its transfers, are edges. The Program can hang exactly when this graph has a cycle.
#pragma once

#include "core/base/diagnostic.h"
#include "core/program/program.h"

namespace pipewright {

/// Empty when no cycle exists; otherwise one Error that names the instructions of a shortest cycle in
/// order, each with its device. O(instructions).
Diagnostics checkDeadlock(const Program& program, Communication communication = Communication::Overlapped);

/// Does every device issue its instructions in the order of the Program's tasks, and wait for none that comes later?
/// Then no circle of waits exists, however the devices communicate. What compile() makes does, unless transfers stand
/// in an order of their own. O(instructions), without memory.
bool issuesInTaskOrder(const Program& program);
/// The part of it that does not need the instruction lists: does no task wait for a later one? O(tasks).
bool waitsInTaskOrder(const Program& program);

} // namespace pipewright
