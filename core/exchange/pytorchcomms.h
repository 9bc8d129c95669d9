// SPDX-License-Identifier: GPL-3.0-or-later
// The communication order of PyTorch's compute_comms schedules. PyTorch issues every cell in order: a SEND starts a
// transfer, a RECV posts one, and the computation that needs the value waits for it. Sends are waited for by a cell of
// their own or, before 2.15, at the end of the step (pytorchwaits.h). Between stages on one rank nothing is sent.
// PyTorch checks none of this.
#pragma once

#include "core/base/textcells.h"
#include "core/design/costs.h"
#include "core/exchange/pytorchaction.h"
#include "core/program/deadlock.h"
#include "core/program/program.h"
#include "core/schedule/schedule.h"

#include <vector>

namespace pipewright {

using PytorchRows = std::vector<std::vector<PytorchAction>>; ///< per rank

/// The tasks of a Program without skip connections as PyTorch's actions, in one global order of which every row
/// is a projection: computations by their predicted end, each transfer right behind the computation that makes
/// its value, or, of a Program whose transfers run on one stream (Communication::OneStream), where it is predicted to
/// begin, which keeps the order of every stream. Hence nothing can hang even when transfers block; a send directly
/// follows its computation; and a receive is posted before the computation during which its value gets ready, so that
/// it holds up neither the sender nor other transfers of its rank. Where transfers take no time, a rank that runs all
/// its transfers one after the other (one NCCL stream) reaches the predicted times exactly. O(tasks x log).
PytorchRows communicationOrder(const Program& program, const Costs& costs);

/// The order of the sends and receives of every row, as stated pairs of neighbours (Schedule::transferOrder).
/// `schedule` has the same computations. O(actions log actions).
std::vector<TransferPrecedence> transferOrderOf(const Schedule& schedule, const PytorchRows& rows);

/// Can the communication of `rows` hang? They must hold the computations of `program` and each of its
/// transfers once; a wait for a send holds up its rank. O(actions).
Diagnostics checkRowsForDeadlock(const Program& program, const PytorchRows& rows, Communication communication);

/// Checks the sends and receives of a file against the order of its computations: each belongs to a stage
/// of its rank, is needed, appears once, a send after the computation that makes its value and a receive before
/// the one that needs it, and both ranks of a pair use the same order. `cells[r][i]` and `lines[r]` are the
/// places of the actions. `schedule` has the same computations.
void checkTransfers(const Schedule& schedule, const PytorchRows& rows, const std::vector<std::vector<int>>& cells,
                    const std::vector<int>& lines, CellFaults& faults);

} // namespace pipewright
