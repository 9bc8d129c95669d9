// SPDX-License-Identifier: GPL-3.0-or-later
// PyTorch schedule CSV: one line per pipeline rank, cells in the order in which the rank runs them.
// compute_only holds computations alone, and PyTorch adds the communication itself, greedily; compute_comms
// holds every send and receive and is executed unchanged (pytorchcomms.h orders and checks them).
#pragma once

#include "core/exchange/exportedtext.h"
#include "core/exchange/importedtransfers.h"
#include "core/exchange/pytorchaction.h"
#include "core/exchange/pytorchwaits.h"

namespace pipewright {

enum class PytorchCsv { ComputeOnly, ComputeComms };

/// For _load_csv(file, format="compute_only"). Throws Error when the schedule cannot run. PyTorch
/// also wants the last stage's forwards in the order of their microbatches; a warning says when they are not.
ExportedText pytorchCsv(const Design& design);
/// For _load_csv(file, format="compute_comms") of the given version and those after it with the same grammar: the
/// transfers of the compiled Program in an order that is proved free of deadlock with blocking and with
/// overlapping communication before it is written. Throws Error when the design cannot be run by PyTorch at
/// all (skip connections, forwards of the last stage out of order).
ExportedText pytorchCommsCsv(const Design& design, PytorchVersion version = PytorchVersion::V2_15);

/// Reads either form, or with `form` only that one. Empty cells are idle steps of compute_only and an error in
/// compute_comms, as in PyTorch. Overlapped computations are put one after the other (a warning says so);
/// UNSHARD, RESHARD, REDUCE_GRAD and waits are left out (a note says so). The order of sends and receives is kept, or
/// made as `transfers` says (importedtransfers.h); one that hangs on one stream is a warning with the circle. Throws
/// Error naming line and cell.
Imported importPytorchCsv(std::string_view text, const std::string& source,
                          PytorchLetters letters = PytorchLetters::Current, std::optional<PytorchCsv> form = {},
                          std::optional<TransferSource> transfers = {});

} // namespace pipewright
