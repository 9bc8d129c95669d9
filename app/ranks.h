// SPDX-License-Identifier: GPL-3.0-or-later
// Processes of `run --backend mpi`, one per device, started on this machine when no launcher did.
#pragma once

#include "core/base/units.h"

namespace pipewright::app {

/// Starts this command once per device on this machine and waits for the processes. They meet on a loopback address
/// with a secret of their own. Forwards SIGINT and SIGTERM; what rank 0 prints is the answer. One that
/// stands still is ended ten seconds and a deadline after rank 0, or after another that failed. Returns its exit code,
/// or that of bad input when it has none. Throws Error when the processes cannot be started.
int runOnLocalRanks(int devices, Nanoseconds deadline);

} // namespace pipewright::app
