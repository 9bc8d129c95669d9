// SPDX-License-Identifier: GPL-3.0-or-later
// Transfers in the order that a person states (Schedule::transferOrder), where the order that compile infers is
// not the wanted one. The global sequence is rewritten so that every stated pair holds, and each device's list
// stays its projection: whatever order exists at all is therefore free of deadlock, and one that does not exist
// is explained as the circle of waits that it would be. Only schedules that state something pay for it.
#pragma once

#include "core/design/design.h"
#include "core/program/program.h"
#include "core/schedule/edits.h"

namespace pipewright {

/// A stated pair of which both sides exist.
struct StatedPair {
    const TransferPrecedence* names = nullptr;
    TaskId before = none, after = none; ///< of a collective its block
};
/// Those of the pairs, which must outlive the result. `program`: of the groups, where there are some. Throws Error for
/// a collective and another one, or a transfer that does not leave its group. O(tasks log pairs).
std::vector<StatedPair> statedPairs(const Program& program, const std::vector<TransferPrecedence>& stated);

/// A note for each of the others. O(tasks log pairs).
Diagnostics notesOnStatedPairs(const Program& program, const std::vector<TransferPrecedence>& stated);

/// Reorders the global sequence: a transfer moves up to before the ones it is stated to precede, together with
/// what it needs. A device sends nothing before it has computed what its stated predecessors carry, which
/// becomes a dependency. A collective counts as its block; amid that collectiveorder.h has it. Pairs of which one does
/// not exist are passed over. Called before the sequence is projected onto devices. Throws Error with the circle when
/// two statements, or a statement and the data, contradict each other. O(tasks + pairs log pairs).
void applyTransferOrder(Program& program, const std::vector<TransferPrecedence>& stated);

/// One entry of a device's list of communication.
struct IssuedTransfer {
    Transfer transfer;
    TaskId task = none;
    bool sends = false; ///< it leaves the device; otherwise it arrives here
    bool operator==(const IssuedTransfer&) const = default;
};
/// The sends and receives of a device, and its copies to and from the host's memory, in the order in which it issues
/// them. O(its instructions).
std::vector<IssuedTransfer> transfersOf(const Program& program, int device);

/// The transfer that carries what `producer` hands to `destination`, by the name that statements use.
Transfer nameOf(const Program& program, TaskId transfer);

/// The design's schedule with what must be stated for the transfer at place `from` of a device's list to come to
/// place `to` (of the list without it), and without what contradicts that. `program` is the present one of the
/// design. Compiles the result, so that the diagnostics hold the circle when the order cannot be. O(tasks).
EditResult moveTransfer(const Design& design, const Program& program, int device, int from, int to);

/// From which to which place of its device's list the transfer at place `from` may go, as far as the data says: behind
/// the transfers that it needs, before those that need it. What was stated about others, and pairs that block each
/// other, only moveTransfer() knows: it refuses everything outside, and now and then something inside. O(tasks).
struct TransferRange {
    int first = 0, last = -1;
};
TransferRange transferRange(const Program& program, int device, int from);

/// States that one comes before another, or forgets that; false where it was not stated.
void state(Schedule& schedule, const Transfer& first, const Transfer& second);
bool forget(Schedule& schedule, const Transfer& first, const Transfer& second);

/// Forgets everything that is stated about one transfer, which then goes where its data puts it.
Schedule withoutStatedOrder(const Schedule& schedule, const Transfer& transfer);

} // namespace pipewright
