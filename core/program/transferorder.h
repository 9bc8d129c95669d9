// SPDX-License-Identifier: GPL-3.0-or-later
// Applies the order of transfers that the user states (Schedule::transferOrder) in place of the order that compile
// infers. The global sequence is rewritten so that every stated pair holds, and each device's list stays its
// projection. So every order that is accepted is free of deadlock, and an impossible one is reported with its cycle of
// waits. Schedules without stated pairs have no cost.
#pragma once

#include "core/program/program.h"

namespace pipewright {

/// Whether the two carry the same values to the same device: I and B make the same gradient, so what is stated of it
/// stays valid when a backward is split. Their collectives differ.
bool sameTransfer(const Transfer& one, const Transfer& other);

/// A stated pair of which both sides exist.
struct StatedPair {
    const TransferPrecedence* names = nullptr;
    TaskId before = none, after = none; ///< of a collective its block
};
/// The stated pairs of which both sides exist. `stated` must outlive the result. `program`: of the groups, where there
/// are some. Throws Error for a pair of two collectives, or of a collective and a transfer that does not leave its
/// group. O(tasks log pairs).
std::vector<StatedPair> statedPairs(const Program& program, const std::vector<TransferPrecedence>& stated);

/// A note for each of the first pairs of which a side does not exist, and one that counts the others. O(tasks log
/// pairs).
Diagnostics notesOnStatedPairs(const Program& program, const std::vector<TransferPrecedence>& stated);

/// Reorders the global sequence: a transfer moves up to before the ones it is stated to precede, together with what it
/// needs. A device sends a transfer only after it has computed the values of its stated predecessors, which becomes a
/// dependency. A collective counts as its block; its place inside the block is decided by collectiveorder.h. Pairs of
/// which a side does not exist are ignored. Called before the sequence is projected onto devices. Throws
/// Deadlock with the cycle when two stated pairs, or a stated pair and the data dependencies, contradict each other.
/// O(tasks + pairs log pairs).
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

/// What a device exchanges with copies of the pipeline that are only counted, in the order in which it issues that; a
/// sum of gradients leaves the device. O(its instructions).
std::vector<IssuedTransfer> collectivesOf(const Program& program, int device);

/// The name of a transfer task as it is used in stated pairs.
Transfer nameOf(const Program& program, TaskId transfer);

} // namespace pipewright
