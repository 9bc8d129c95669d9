// SPDX-License-Identifier: GPL-3.0-or-later
// The cells around sends and receives that PyTorch's compute_comms asks for, and which versions know them.
// Waits for sends and for reductions exist since 2.15, which refuses files without them; 2.10 to 2.14 know
// REDUCE_GRAD alone, and 2.9 and before not even that, where the last backward scales the gradients.
#pragma once

#include "core/exchange/pytorchcomms.h"

namespace pipewright {

enum class PytorchVersion { V2_9, V2_10, V2_15 }; ///< the first version of each grammar

/// Completes rows of computations, sends and receives:
/// - UNSHARD of every stage of the row at its front, in the order of their use, and RESHARD when the stage is
///   done: parameters that FSDP shards are gathered once and held; PyTorch skips both for other stages. Where the
///   Program gathers parameters (ZeRO 3), both stand where it gathers and frees them;
/// - REDUCE_GRAD after a stage's last backward and the gradient that it sends, so that no rank waits for the
///   reduction, and WAIT_REDUCE_GRAD after it, since a rank may have one reduction in flight;
/// - WAIT_SEND_F and WAIT_SEND_B, which release a sent value: after the first computation that reads something which
///   the receiver sent after it had used the value, or after the stage's own backward of the microbatch; by then the
///   value has arrived. If neither comes first, before the send that would exceed the number in flight to that rank
///   that the Program allows (CompileOptions) and the predicted memory assumes. The rest at the end.
///   O(actions).
void addBookkeeping(PytorchRows& rows, const Program& program, PytorchVersion version);

/// Checks the waits of a file: one after each send and one before the next reduction, or none at all, as in files from
/// before 2.15. `cells` and `lines` as in checkTransfers().
void checkWaits(const PytorchRows& rows, const std::vector<std::vector<int>>& cells, const std::vector<int>& lines,
                CellFaults& faults);

} // namespace pipewright
