// SPDX-License-Identifier: GPL-3.0-or-later
// Edits of the stated order of transfers: one is moved in its device's list, or goes back to where the data puts it.
#pragma once

#include "core/design/design.h"
#include "core/program/transferorder.h"
#include "core/schedule/edits.h"

namespace pipewright {

/// The design's schedule with the pairs that move the transfer at place `from` of a device's list to place `to` (of the
/// list without it), and without pairs that contradict this. `program` is the design's present Program. Compiles the
/// result, so that the diagnostics have the cycle of an impossible order. Where the list's neighbours are stated, as in
/// an imported order, so are the new ones. O(tasks).
EditResult moveTransfer(const Design& design, const Program& program, int device, int from, int to);

/// The range of places in its device's list that the data dependencies allow for the transfer at place `from`: after
/// the transfers that it needs, before those that need it. moveTransfer() refuses every place outside this range, and
/// sometimes one inside it, because of other stated pairs or pairs that block each other. O(tasks).
struct TransferRange {
    int first = 0, last = -1;
};
TransferRange transferRange(const Program& program, int device, int from);

/// Adds the pair "`first` before `second`", or removes it; forget() returns false when it was not stated.
void state(Schedule& schedule, const Transfer& first, const Transfer& second);
bool forget(Schedule& schedule, const Transfer& first, const Transfer& second);

/// Removes all pairs of one transfer, which then has its inferred place. Neighbours between which it was stated stay in
/// order.
Schedule withoutStatedOrder(const Schedule& schedule, const Transfer& transfer);

} // namespace pipewright
