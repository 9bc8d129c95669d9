// SPDX-License-Identifier: GPL-3.0-or-later
// Schedule -> Program, the way JaxPP does it (arXiv 2412.14374): simulate the lists to get one global
// order, infer a transfer for every (value, consumer device), project the global order onto devices,
// and free every buffer after its last use. Deadlock freedom follows from the projection; checkDeadlock (deadlock.h)
// proves it again on the result, and on the Program of an edited schedule. O(blocks); where a long schedule repeats
// itself a short one is compiled and the rest copied (repeat.h), which gives the same Program.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/costs.h"
#include "core/design/dataflow.h"
#include "core/program/program.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// The orders of the devices, or the stated orders of transfers, wait for each other.
class Deadlock : public Error {
public:
    using Error::Error;
};

struct CompileOptions {
    /// Keep one gradient accumulator per owner of a shared parameter and reduce once after the loop
    /// (loop commuting). Off: one gradient transfer per microbatch.
    bool commuteSharedGradients = true;
    /// A sent buffer is freed before the n-th following send on the same channel, so at most n sends of
    /// a channel are in flight. At least 1.
    int outstandingSends = 2;
    /// Compile the blocks that are placed and let none wait for one that is not: what an editor shows while
    /// the tray still holds blocks. Such a Program must not be executed.
    bool allowMissing = false;
};

/// Throws Error with validate()'s diagnostics when the schedule cannot run; Deadlock with the cycle, block by block,
/// when the orders of the devices wait for each other.
Program compile(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow = {},
                const CompileOptions& options = {});

} // namespace pipewright
