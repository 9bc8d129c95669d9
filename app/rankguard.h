// SPDX-License-Identifier: GPL-3.0-or-later
// Stands between this program, which launches ranks, and mpirun, which starts them. mpirun that was started with few
// files or little memory may wait for ever and heed no SIGTERM, so that to be sent one when the launcher dies is not
// enough: the guard outlives the launcher, asks mpirun to end, and ends it when it does not.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace pipewright::app {

/// Starts `program` with `words` under a guard and gives the guard's number; below 0: errno says why not. The guard
/// hands SIGINT and SIGTERM on and ends as mpirun does, ten seconds after the first of them at the latest; the death
/// of this process counts as a SIGTERM. `output` becomes mpirun's standard output. When mpirun has ended, `folders` are
/// removed with what it left there. SIGINT, SIGTERM and SIGCHLD must be blocked.
pid_t startGuarded(const std::string& program, std::vector<std::string> words, int output,
                   std::vector<std::string> folders);

} // namespace pipewright::app
