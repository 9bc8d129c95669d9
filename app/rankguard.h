// SPDX-License-Identifier: GPL-3.0-or-later
// A guard process between this program, which launches ranks, and mpirun, which starts them. mpirun that was started
// with few open files or little memory may wait for ever and ignore SIGTERM, so sending it SIGTERM when the launcher
// dies is not enough. The guard outlives the launcher, asks mpirun to end, and kills it when it does not.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace pipewright::app {

/// Starts `program` with `words` under a guard and returns the guard's process number; negative on failure, with the
/// reason in errno. The guard forwards SIGINT and SIGTERM and ends with mpirun's status, at the latest ten seconds
/// after the first signal; the death of this process counts as a SIGTERM. `output` becomes mpirun's standard output.
/// When mpirun has ended, `folders` are removed with all files that it left in them. SIGINT, SIGTERM and SIGCHLD must
/// be blocked.
pid_t startGuarded(const std::string& program, std::vector<std::string> words, int output,
                   std::vector<std::string> folders);

} // namespace pipewright::app
